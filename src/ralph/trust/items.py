"""What a run would execute or follow because the repository says so, each item with a digest of its content."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import msgspec

from ralph.errors import UsageError
from ralph.system.digest import digest
from ralph.system.files import file_hash, leads_out
from ralph.system.owners import other_owner

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

#: A larger file is known by its size and times: reading it would take too long.
_MAX_CODE = 16 << 20
#: How many files of one command are known by their content.
_MAX_FILES = 64


class Item(msgspec.Struct, frozen=True):
    """Something that needs approval."""

    #: `verify`, `command`, … or the path of a file, relative to `root`
    what: str
    #: the command as text; empty for a file
    text: str
    digest: str
    #: the directory that the approval is for
    root: Path
    #: where it is configured: `ralph.yml:3`
    origin: str = ""
    #: the configuration file that contains it
    source: Path | None = None
    #: it is used before the run begins: to read settings, or to ask for a version
    at_start: bool = False
    #: it is not code, but a path to something outside the repository
    path: bool = False
    #: the other user whose file it is
    owner: str = ""

    @property
    def key(self) -> tuple[Path, str, str]:
        """What an approval is for: this item with this content in this directory."""
        return self.root, self.what, self.digest


def of_files(paths: Iterable[Path], root: Path, origin: str = "", *, at_start: bool = True) -> list[Item]:
    """Items for files that would be executed."""
    return [
        Item(_shown(path, root), "", file_digest(path), root, origin, at_start=at_start)
        for path in dict.fromkeys(paths)
    ]


def of_path(name: str, path: Path, target: Path, root: Path, origin: str) -> Item:
    """An item for a path that leads to `target`, outside the repository."""
    shown = _shown(path, root)
    text = f"{shown} leads out of the repository, to {target}" if shown != str(target) else f"{shown}, outside of it"
    hashed = digest(text.encode("utf-8", "surrogateescape"))
    return Item(name, text, hashed, root, "" if origin == "default" else origin, at_start=True, path=True)


def of_others_files(paths: Iterable[Path], root: Path, top: Path, origin: str = "") -> list[Item]:
    """Items for those of the files that belong to another user. `top` is the repository."""
    found = []
    for path in dict.fromkeys(paths):
        owner = other_owner(path, top)
        if owner is not None:
            text = f"{_shown(path, root)}, which belongs to {owner}"
            hashed = digest(f"{text} {file_digest(path)}".encode("utf-8", "surrogateescape"))
            found.append(Item("file", text, hashed, root, origin, at_start=True, owner=owner))
    return found


def of_setting(name: str, text: str, root: Path, origin: str) -> Item:
    """An item for a setting of the project that is looser than the user's own."""
    hashed = digest(text.encode("utf-8", "surrogateescape"))
    return Item(f"looser {name}", text, hashed, root, origin)


def of_journal(root: Path, folders: Iterable[Path], repository: Path) -> list[Item]:
    """An item for the journal of the runs in `root`, if one of its folders is a link out of the repository."""
    for folder in folders:
        target = leads_out(folder, repository)
        if target is not None:
            return [of_path("journal", folder, target, root, "")]
    return []


def of_command(name: str, paths: list[Path], root: Path, origin: str, *, at_start: bool) -> list[Item]:
    """Items for the files that a command runs. Beyond a number of them, the rest is one item."""
    where = f"{name} in {origin}"
    found = of_files(paths[:_MAX_FILES], root, where, at_start=at_start)
    rest = paths[_MAX_FILES:]
    if rest:
        known = "\n".join(f"{path} {_times(path)}" for path in rest)
        text = f"{len(rest)} more files, from {_shown(rest[0], root)} to {_shown(rest[-1], root)}"
        hashed = digest(known.encode("utf-8", "surrogateescape"))
        found.append(Item(f"files of {name}", text, hashed, root, where, at_start=at_start))
    return found


def file_digest(path: Path) -> str:
    try:
        return file_hash(path, _MAX_CODE)
    except OSError as error:
        if error.errno == errno.EFBIG:
            return digest(_times(path).encode())
        if error.errno == errno.EINVAL:
            raise UsageError(f"{path} cannot be run: {error.strerror}") from None
        return digest(f"unreadable: {error.strerror}".encode())


def _times(path: Path) -> str:
    """What changes whenever somebody writes to a file: nobody can set its ctime."""
    try:
        info = path.stat()
    except OSError as error:
        return f"unreadable: {error.strerror}"
    return f"{info.st_size} {info.st_ino} {info.st_mtime_ns} {info.st_ctime_ns}"


def _shown(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
