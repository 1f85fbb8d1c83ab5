"""Where the user's own files are, and folders and files whose mode does not depend on the umask alone."""

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


def make_folder(path: Path, mode: int = 0o700) -> None:
    """Creates a folder and those above it that are missing, all with this mode. One that exists stays as it is.

    `Path.mkdir` gives the mode only to the last one: with a umask of 0, everyone could write to the others.
    """
    missing = []
    while not path.is_dir():
        missing.append(path)
        if path == path.parent:
            break
        path = path.parent
    for folder in reversed(missing):
        folder.mkdir(mode=mode, exist_ok=True)


def create_file(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Writes a new file that nobody else can write to. FileExistsError if there is one, or a link."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb") as file:
        file.write(data)
