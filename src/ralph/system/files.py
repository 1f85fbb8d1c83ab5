"""Reading what somebody else may have put there: only regular files, only so much of them, and where links lead."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from ralph.errors import UsageError

#: Nobody writes a longer configuration, script or plan.
MAX_CONFIG = 4 << 20


def open_regular(path: Path, *, follow: bool = False) -> BinaryIO:
    """For reading; OSError for what is no regular file. A pipe is not waited for, a link not followed."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
    try:
        mode = os.fstat(fd).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "it is a directory", str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device, not a regular file", str(path))
        return os.fdopen(fd, "rb")
    except OSError:
        os.close(fd)
        raise


def read(path: Path, limit: int = MAX_CONFIG, *, follow: bool = True) -> bytes:
    """All of a regular file; OSError, which says why in `strerror`, for any other and for one that is too large."""
    with open_regular(path, follow=follow) as file:
        return _all(file, path, limit)


def read_any(path: Path, limit: int) -> bytes:
    """The same of whatever the user named, be it a pipe or a device: it is waited for, up to its end."""
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
    """What belongs together with a directory: its git repository, else itself."""
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111 - a user without a home is no reason to fail
    for folder in (workdir, *workdir.parents):
        if (folder / ".git").exists():
            # Whoever keeps the home directory in git did not say that all projects below belong together.
            return workdir if os.path.realpath(folder) == home else folder
    return workdir


def leads_out(path: Path, *roots: Path) -> Path | None:
    """Where a path really leads, if that is in none of these directories."""
    target = Path(os.path.realpath(path))  # unlike Path.resolve, it takes a circle of links for a name
    inside = any(target.is_relative_to(os.path.realpath(root)) for root in roots)
    return None if inside else target


def refuse_outside(path: Path, shown: str, workdir: Path, instead: str) -> None:
    """UsageError for a file of the repository that is a link out of it."""
    target = leads_out(path, repository(workdir))
    if target is not None:
        raise UsageError(f"{shown} is a link out of the repository, to {target}, and is not read. {instead}")
