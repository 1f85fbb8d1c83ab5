"""Finding a program in PATH."""

from __future__ import annotations

import os


def which(name: str) -> str | None:
    """The program that the shell would start for this name. (`shutil.which` does the same, but is slow to import.)"""
    if "/" in name:
        return name if _runnable(name) else None
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return next((path for folder in folders if _runnable(path := os.path.join(folder, name))), None)  # noqa: PTH118


def _runnable(path: str) -> bool:
    return os.access(path, os.X_OK) and not os.path.isdir(path)  # noqa: PTH112 - Path("") would be the current folder
