"""Where the user's own files are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def user_config_dir(environ: Mapping[str, str] | None = None) -> Path:
    base = (os.environ if environ is None else environ).get("XDG_CONFIG_HOME")
    # expanduser, not Path.home(): a user without a home is no reason to fail
    return (Path(base) if base else Path(os.path.expanduser("~/.config"))) / "ralph"  # noqa: PTH111


def user_state_dir(environ: Mapping[str, str] | None = None) -> Path:
    base = (os.environ if environ is None else environ).get("XDG_STATE_HOME")
    return (Path(base) if base else Path(os.path.expanduser("~/.local/state"))) / "ralph"  # noqa: PTH111
