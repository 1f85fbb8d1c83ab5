"""What a file contains, as a short signature."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias

from ralph.system.files import open_descriptor

if TYPE_CHECKING:
    from collections.abc import Callable

#: What the kernel says of a file. An agent can set the other times, but not the first, which every change sets.
Identity: TypeAlias = tuple[int, int, int, int, int]
identity: Callable[[os.stat_result], Identity] = attrgetter(
    "st_ctime_ns", "st_ino", "st_size", "st_mtime_ns", "st_mode"
)
#: A larger file is compared by its identity alone, so touching it counts as a change.
_HASH_LIMIT = 32 << 20
#: Seconds for reading files in one walk. What is left over is compared by its identity, too.
_READ_LIMIT = 20.0
_CHUNK = 1 << 20
#: A file that changed this recently may change again without a new time: some file systems count in steps of 2 s.
_SETTLED_NS = 2_000_000_000
#: Where the kernel itself counts in steps, they are at most this long.
_TICK_NS = 50_000_000
#: The executable bit, as in git, and what git does not record: set-user-ID and set-group-ID.
_MODE = stat.S_IXUSR | stat.S_ISUID | stat.S_ISGID


class Contents:
    """Reads files, within limits."""

    def __init__(self) -> None:
        #: seconds that reading has taken
        self.spent = 0.0
        self._until = 0.0
        self._now = 0
        self._latest = 0

    def begin(self) -> None:
        """A new walk."""
        self._until = self.spent + _READ_LIMIT
        self._now = time.time_ns()
        self._latest = 0

    def is_settled(self, found: Identity) -> bool:
        """Whether any later change would give it another identity."""
        return found[0] < self._now - _SETTLED_NS

    def signature(self, place: bytes, info: os.stat_result, found: Identity) -> tuple[bytes, bool]:
        """And whether it holds as long as the file has this identity."""
        content = self._content(place, info)
        if content is not None:
            return content, self.is_settled(found)
        self._latest = max(self._latest, found[0])
        return b"i%x.%x.%x.%x.%x" % found, True

    def settle(self) -> None:
        """Waits until a change of a file that was not read would give it another time."""
        left = self._latest + _TICK_NS - time.time_ns()
        if 0 < left <= _TICK_NS:
            time.sleep(left / 1e9)

    def _content(self, place: bytes, info: os.stat_result) -> bytes | None:
        """None if it is not read: too large, out of time, or not readable."""
        match stat.S_IFMT(info.st_mode):
            case stat.S_IFLNK:
                try:
                    return b"l" + _digest(os.readlink(place))  # noqa: PTH115 - bytes
                except OSError:
                    return None
            case stat.S_IFREG:
                read = self._file(place, info)
                return None if read is None else b"f%o:%b" % (info.st_mode & _MODE, read)
        return b"s%o.%x" % (stat.S_IFMT(info.st_mode), info.st_rdev)  # a pipe, a socket, a device: never opened

    def _file(self, place: bytes, info: os.stat_result) -> bytes | None:
        if info.st_size > _HASH_LIMIT or self.spent > self._until:
            return None
        began = time.perf_counter()
        try:
            return _file_digest(place, info.st_size)
        except OSError:
            return None
        finally:
            self.spent += time.perf_counter() - began


def _file_digest(place: bytes, size: int) -> bytes | None:
    """`size` is what is expected; it may be another file by now: one that would block, or without an end."""
    digest = hashlib.blake2b(digest_size=16)
    left = _HASH_LIMIT
    fd = open_descriptor(place)
    try:
        wanted = min(size + 1, _CHUNK)
        while chunk := os.read(fd, wanted):
            left -= len(chunk)
            if left < 0:
                return None
            digest.update(chunk)
            if len(chunk) < wanted:
                break  # the end of the file
    finally:
        os.close(fd)
    return digest.digest()


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
