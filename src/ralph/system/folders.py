"""Where the user's own files are."""

from __future__ import annotations

import os
from pathlib import Path


def user_config_dir() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME")
    # expanduser, not Path.home(): must not fail for a user without a home
    return (Path(base) if base else Path(os.path.expanduser("~/.config"))) / "ralph"  # noqa: PTH111
