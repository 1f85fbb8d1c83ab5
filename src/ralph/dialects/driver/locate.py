"""Finds the file of a driver."""

from __future__ import annotations

import re
from pathlib import Path

from ralph.errors import UsageError

FOLDERS = ("ralph/drivers", ".ralph/drivers")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


def locate(value: str, workdir: Path, origin: str) -> Path | None:
    """The file of the driver with this name or path. None if the project has no driver of this name.

    Only --driver and RALPH_DRIVER may be a path. `.ralphrc` and PLATFORM_DRIVER can only name a driver of the project.
    """
    typed = origin in ("--driver", "RALPH_DRIVER")
    if typed and "/" in value:
        path = Path(value).expanduser()
        place = next((p for p in (Path.cwd() / path, workdir / path) if p.is_file()), None)
        if place is None:
            raise UsageError(f"there is no driver {value} ({origin})")
        return place
    if not _NAME.fullmatch(value) or ".." in value:
        hint = "" if typed else "; to use a file elsewhere, use --driver PATH"
        raise UsageError(f"'{value}' ({origin}) is not a valid driver name{hint}")
    for folder in FOLDERS:
        path = workdir / folder / f"{value}.sh"
        if path.is_file():
            _check_inside(path, workdir, origin)
            return path
    return None


def all_drivers(workdir: Path) -> list[Path]:
    """All drivers of a project, and any helper scripts beside them: their names do not tell which is which."""
    return [path for folder in FOLDERS for path in sorted((workdir / folder).glob("*.sh")) if path.is_file()]


def _check_inside(path: Path, workdir: Path, origin: str) -> None:
    if not path.resolve().is_relative_to(workdir.resolve()):
        raise UsageError(
            f"the driver {path} ({origin}) is a link out of the project, to {path.resolve()}; "
            "to use that file, use --driver PATH"
        )
