"""Files that only grow: the events, and an agent's raw output."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from ralph.journal.files import journal_error
from ralph.masking.stream import ByteMasker

if TYPE_CHECKING:
    from pathlib import Path

    from ralph.masking.masker import Masker


class Appender:
    """An append-only file without a buffer. A short write or a full disk raises RunError; nothing is lost silently."""

    def __init__(self, path: Path, how: int = os.O_WRONLY | os.O_CREAT | os.O_APPEND) -> None:
        self._path = path
        try:
            # Without waiting: a repository may bring a pipe of this name.
            self._fd = os.open(path, how | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
            if not stat.S_ISREG(os.fstat(self._fd).st_mode):
                raise OSError(errno.EINVAL, "it is a pipe or a device, not a regular file")
        except OSError as error:
            raise journal_error(path, error) from None

    def fileno(self) -> int:
        return self._fd

    def write(self, data: bytes, *, whole: bool = False) -> None:
        """`whole` writes all or nothing, so that the next line never follows half a line."""
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as error:
            if whole and len(view) < len(data):
                with suppress(OSError):
                    os.ftruncate(self._fd, os.fstat(self._fd).st_size - (len(data) - len(view)))
            raise journal_error(self._path, error) from None

    def take(self, source: int, size: int) -> bytes:
        """Moves up to `size` bytes from a pipe to this file and returns them; empty when all writers are gone."""
        data = os.read(source, size)
        self.write(data)
        return data

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class RawFile(Appender):
    """The raw output of an agent, taken from its pipe."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, os.O_RDWR | os.O_CREAT)  # splice does not work with O_APPEND
        self._size = os.lseek(self._fd, 0, os.SEEK_END)
        self._splices = hasattr(os, "splice")

    def take(self, source: int, size: int) -> bytes:
        """Lets the kernel move the bytes, so that each is in the pipe or in the file at any moment.

        A SIGKILL between a read and a write would lose them.
        """
        if self._splices:
            try:
                count = os.splice(source, self._fd, size, flags=os.SPLICE_F_NONBLOCK)
            except BlockingIOError:
                raise
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise journal_error(self._path, error) from None
                self._splices = False  # not supported here
            else:
                self._size += count
                return os.pread(self._fd, count, self._size - count)
        return super().take(source, size)


class RedactedAppender(Appender):
    """An appender that masks secrets. Bytes that may be the start of one wait for the next write."""

    def __init__(self, path: Path, masker: Masker) -> None:
        super().__init__(path)
        self._masker = ByteMasker(masker)

    def write(self, data: bytes, *, whole: bool = False) -> None:
        super().write(self._masker.feed(data), whole=whole)

    def close(self) -> None:
        try:
            if self._fd >= 0:
                super().write(self._masker.flush())
        finally:
            super().close()
