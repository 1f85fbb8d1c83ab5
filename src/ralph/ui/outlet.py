"""Writing to a reader that may stop reading: a pager that nobody scrolls, a stopped terminal, a stuck program.

The loop and its deadlines must not wait for it. After a while lines are skipped, until the reader continues. The
journal has them all.
"""

from __future__ import annotations

import os
import select
import stat
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: A pipe that is ready for writing takes this much without blocking (POSIX: PIPE_BUF).
_CHUNK = 4096
#: Seconds without any progress before lines are skipped.
PATIENCE = 5.0


class Outlet:
    """`gap` makes the message for a number of skipped lines. With `patience=None`, no line is ever skipped."""

    def __init__(self, fd: int, gap: Callable[[int], str] | None = None, patience: float | None = PATIENCE) -> None:
        self._gap = gap
        self._patience = 0.0 if patience is None else patience
        mode = os.fstat(fd).st_mode
        stream = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or (stat.S_ISCHR(mode) and os.isatty(fd))
        self._waits = stream and patience is not None
        self._fd = _unblocked(fd) if stat.S_ISCHR(mode) and self._waits else fd
        #: the rest of a line that is half written
        self._rest = b""
        self._stuck = False
        self._skipped = 0

    def write(self, data: bytes, *, counts: bool = True) -> None:
        """Writes the data, or skips whole lines of it if nobody reads. Only with `counts` are they reported."""
        if not self._waits:
            view = memoryview(data)
            while view:
                view = view[os.write(self._fd, view) :]
            return
        if self._stuck:
            if not self._push(self._rest, 0.0):
                self._skip(data, counts=counts)
                return
            self._stuck = False
            if self._skipped and self._gap is not None:
                data = self._gap(self._skipped).encode("utf-8", "replace") + data
            self._skipped = 0
        if not self._push(data, self._patience):
            self._stuck = True
            cut, newline, later = self._rest.partition(b"\n")
            self._rest = cut + newline
            self._skip(later, counts=counts)

    def _skip(self, data: bytes, *, counts: bool) -> None:
        self._skipped += data.count(b"\n") if counts else 0

    def _push(self, data: bytes, patience: float) -> bool:
        """Writes the data. False if the reader makes no progress for `patience` seconds; the rest is kept."""
        view = memoryview(data)
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        end = time.monotonic() + patience
        try:
            while view:
                if not poll.poll(max(0.0, end - time.monotonic()) * 1000):
                    return False
                try:
                    view = view[os.write(self._fd, view[:_CHUNK]) :]
                except BlockingIOError:  # the terminal has less room than it reported
                    if time.monotonic() >= end:
                        return False
                    time.sleep(0.01)
                else:
                    end = time.monotonic() + patience
            return True
        finally:
            self._rest = bytes(view)


def _unblocked(fd: int) -> int:
    """The same terminal, opened again so that writes never block; `fd` itself if that fails.

    Making `fd` itself non-blocking would affect the shell, too.
    """
    try:
        return os.open(f"/dev/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return fd
