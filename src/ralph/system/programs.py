"""Finding a program in PATH, the same way for all that ralph starts itself."""

from __future__ import annotations

import os


def which(name: str, path: str | None = None) -> str | None:
    """The program that this name stands for. (`shutil.which` is slow to import.)

    Unlike a shell, it never finds one in the work tree through a relative or empty entry of PATH.
    """
    if "/" in name:
        return name if _runnable(name) else None
    folders = filter(None, search_path(path).split(os.pathsep))
    return next((found for folder in folders if _runnable(found := os.path.join(folder, name))), None)  # noqa: PTH118


def search_path(path: str | None = None) -> str:
    """PATH without its relative and empty entries, which would lead into the current directory."""
    given = os.environ.get("PATH", os.defpath) if path is None else path
    return os.pathsep.join(folder for folder in given.split(os.pathsep) if folder.startswith("/"))


def _runnable(path: str) -> bool:
    return os.access(path, os.X_OK) and not os.path.isdir(path)  # noqa: PTH112 - Path("") would be the current folder
