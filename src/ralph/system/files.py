"""Reading files that someone else may have created: only regular files, only up to a size, and no links away."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from ralph.errors import UsageError

#: Larger than any configuration, script or plan.
MAX_CONFIG = 4 << 20


def open_regular(path: Path, *, follow: bool = False) -> BinaryIO:
    """Opens a file for reading; OSError if it is not a regular file. Does not wait for a pipe or follow a link."""
    return os.fdopen(open_descriptor(path, follow=follow), "rb")


def open_descriptor(path: Path | bytes, *, follow: bool = False) -> int:
    """Like `open_regular`, for many small files."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
    try:
        mode = os.fstat(fd).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "it is a directory", os.fsdecode(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device, not a regular file", os.fsdecode(path))
    except OSError:
        os.close(fd)
        raise
    return fd


def read(path: Path, limit: int = MAX_CONFIG, *, follow: bool = True) -> bytes:
    """The content of a regular file. OSError, with the reason in `strerror`, if it is none or is too large."""
    with open_regular(path, follow=follow) as file:
        return _all(file, path, limit)


def read_any(path: Path, limit: int) -> bytes:
    """The content of any file that the user named, even a pipe or a device. Waits for its end."""
    with path.open("rb") as file:
        return _all(file, path, limit)


def _all(file: BinaryIO, path: Path, limit: int) -> bytes:
    data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"it is larger than {limit >> 20} MiB", str(path))
    return data


def read_text(path: Path, errors: str = "replace", limit: int = MAX_CONFIG) -> str:
    return read(path, limit).decode("utf-8", errors)


def repository(workdir: Path) -> Path:
    """The git repository that a directory belongs to, or the directory itself."""
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111 - must not fail for a user without a home
    for folder in (workdir, *workdir.parents):
        if (folder / ".git").exists():
            # A home directory may be in git, but the projects below it do not belong together.
            return workdir if os.path.realpath(folder) == home else folder
    return workdir


def leads_out(path: Path, *roots: Path) -> Path | None:
    """The real location of a path if it is outside these directories, otherwise None."""
    target = Path(os.path.realpath(path))  # unlike Path.resolve, it accepts a circle of links
    inside = any(target.is_relative_to(os.path.realpath(root)) for root in roots)
    return None if inside else target


def refuse_outside(path: Path, shown: str, workdir: Path, instead: str) -> None:
    """UsageError if a file of the repository is a link to something outside it."""
    target = leads_out(path, repository(workdir))
    if target is not None:
        raise UsageError(f"{shown} is a link out of the repository, to {target}, so it is not read. {instead}")
