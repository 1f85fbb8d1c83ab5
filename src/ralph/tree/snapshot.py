"""A working tree at one moment, and what changed between two moments."""

from __future__ import annotations

import os
import zlib

import msgspec

from ralph.tree.repository import State  # noqa: TC001 - msgspec reads it
from ralph.tree.rules import Rules  # noqa: TC001 - msgspec reads it

#: A snapshot that takes more is not stored, so that the record of a run stays small.
STORED_LIMIT = 64 << 20


class Snapshot(msgspec.Struct, frozen=True):
    """Every file that was not ignored before the run, whatever git knows of it, with a signature of its content."""

    #: the folder that paths are relative to: the top of the repository, or the working directory outside git
    root: bytes
    #: by folder, which ends with a slash, and name
    files: dict[bytes, dict[bytes, bytes]]
    state: State
    #: HEAD of each repository inside the repository, by its folder
    nested: dict[bytes, str]
    rules: Rules
    #: why it does not contain everything
    incomplete: str = ""

    def encoded(self) -> bytes | None:
        """For the journal. None if it is too large, or does not contain everything."""
        if self.incomplete:
            return None
        data = zlib.compress(msgspec.msgpack.encode(self), 1)
        return data if len(data) <= STORED_LIMIT else None


def decoded(data: bytes) -> Snapshot | None:
    """None if it is damaged."""
    unpacking = zlib.decompressobj()
    try:
        unpacked = unpacking.decompress(data, 20 * STORED_LIMIT)
        return msgspec.msgpack.decode(unpacked, type=Snapshot) if unpacking.eof else None
    except (zlib.error, msgspec.MsgspecError):
        return None


class Changes(msgspec.Struct, frozen=True):
    """The difference between two snapshots."""

    #: paths whose content or mode differs, committed or not
    files: list[str]
    #: commits that were added; None if that cannot be told
    commits: int | None
    #: True, too, if it cannot be told
    changed: bool
    #: why there may be more changes
    unknown: str = ""


def changed_files(before: Snapshot, after: Snapshot) -> list[str]:
    """Where a snapshot is incomplete, a file that it does not contain is not a change."""
    names: list[bytes] = []
    if not before.incomplete and not after.incomplete:  # a repository that is new, or is none any more
        names += [folder + b".git" for folder in before.nested.keys() ^ after.nested.keys()]
    for folder in before.files.keys() | after.files.keys():
        old, new = before.files.get(folder, {}), after.files.get(folder, {})
        if old is new:
            continue
        found = {name for name, _ in old.items() ^ new.items()}
        if before.incomplete:
            found &= old.keys()
        if after.incomplete:
            found &= new.keys()
        names += [folder + name for name in found]
    return sorted(map(os.fsdecode, names))
