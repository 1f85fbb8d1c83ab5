"""Reading files that someone else may have created: only regular files, only up to a size, and no links away."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from ralph.errors import UsageError
from ralph.system.digest import sha256

#: Larger than any configuration, script or plan.
MAX_CONFIG = 4 << 20
_PIECE = 1 << 20


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


def file_hash(path: Path, limit: int) -> str:
    """The SHA-256 of a regular file, as `digest` has it. OSError as in `read`; Ctrl-C ends it at once.

    Piece by piece: a sparse file of any size takes no space in the repository that brings it.
    """
    hashed = sha256()
    with open_regular(path, follow=True) as file:
        left = limit - os.fstat(file.fileno()).st_size
        while left >= 0 and (piece := file.read(_PIECE)):
            left = min(left, limit - file.tell())
            hashed.update(piece)
    if left < 0:
        raise _too_large(path, limit)
    text: str = hashed.hexdigest()
    return text


def read_any(path: Path, limit: int) -> bytes:
    """The content of any file that the user named, even a pipe or a device. Waits for its end."""
    with path.open("rb") as file:
        return _all(file, path, limit)


def _all(file: BinaryIO, path: Path, limit: int) -> bytes:
    data = file.read(limit + 1)
    if len(data) > limit:
        raise _too_large(path, limit)
    return data


def _too_large(path: Path, limit: int) -> OSError:
    size = f"{limit >> 20} MiB" if limit >= 1 << 20 else f"{limit >> 10} KiB"
    return OSError(errno.EFBIG, f"it is larger than {size}", str(path))


def read_text(path: Path, errors: str = "replace", limit: int = MAX_CONFIG) -> str:
    return read(path, limit).decode("utf-8", errors)


def repository(workdir: Path) -> Path:
    """The git repository that a directory belongs to, or the directory itself."""
    return repository_top(workdir) or workdir


def repository_top(workdir: Path) -> Path | None:
    """The top folder of the git repository that a directory belongs to."""
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111 - must not fail for a user without a home
    for folder in (workdir, *workdir.parents):
        if _is_repository(folder):
            # A home directory may be in git, but the projects below it do not belong together.
            return None if os.path.realpath(folder) == home else folder
    return None


def _is_repository(folder: Path) -> bool:
    """Whether it has a `.git` that its owner, you or root put there: anybody can create one in /tmp."""
    git = folder / ".git"
    return git.exists() and git.lstat().st_uid in (folder.stat().st_uid, os.geteuid(), 0)


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
