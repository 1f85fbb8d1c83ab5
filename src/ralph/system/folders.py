"""Where the user's own files are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def user_config_dir(environ: Mapping[str, str] | None = None) -> Path:
    return _folder("XDG_CONFIG_HOME", "~/.config", environ)


def user_state_dir(environ: Mapping[str, str] | None = None) -> Path:
    """What ralph remembers from one run to the next, and could do without."""
    return _folder("XDG_STATE_HOME", "~/.local/state", environ)


def _folder(variable: str, default: str, environ: Mapping[str, str] | None) -> Path:
    base = (os.environ if environ is None else environ).get(variable)
    # expanduser, not Path.home(): a user without a home is no reason to fail
    return (Path(base) if base else Path(os.path.expanduser(default))) / "ralph"  # noqa: PTH111
