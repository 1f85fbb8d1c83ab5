"""Ctrl-C, TERM and `ralph stop` as a value that the loop reads, instead of an exception at an arbitrary line."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

from ralph.system import interrupt

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import FrameType, TracebackType

#: Without a FIFO, requests are checked for this often.
_CHECK_EVERY = 1.0


class StopKind(StrEnum):
    INTERRUPTED = "interrupted"  # Ctrl-C
    TERMINATED = "terminated"  # SIGTERM, SIGHUP
    STOPPED = "stopped"  # `ralph stop`


class StopSwitch:
    """While entered, it records signals and makes `fd` readable, which ends a `select` on it.

    The first signal asks for a clean stop; a second one asks for an immediate one (`urgent`). With `bell`, it creates a
    FIFO at that path, and other processes can wake us up by writing to it. `check` runs then, and on every tick.
    """

    def __init__(self, bell: Path | None = None) -> None:
        self.kind: StopKind | None = None
        self.urgent = False
        self._requests = 0
        self._on_check: Callable[[], None] = lambda: None
        self._bell = bell
        ours = _open_bell(bell) if bell is not None else None
        # We hold both ends of the FIFO: a reader alone would see end-of-file whenever a writer closes it.
        self.fd, self._write = (ours, os.dup(ours)) if ours is not None else os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(self._write, False)
        self._before: dict[signal.Signals, Any] = {}
        self._wakeup_before = -1
        self._counted = interrupt.counted_by(self._count)

    def __enter__(self) -> Self:
        self._wakeup_before = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # `nohup ralph run &` must survive a hang-up
                self._before[number] = signal.signal(number, self._record)
        self._counted.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._counted.__exit__(kind, error, trace)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_before)
        os.close(self.fd)
        os.close(self._write)
        if self._bell is not None:
            with suppress(OSError):  # a FIFO without a reader would block anyone who copies the folder
                self._bell.unlink()

    def _count(self) -> int:
        """How often a stop was asked for. It is asked for this while a short program keeps the loop waiting."""
        import select

        if select.select([self.fd], [], [], 0)[0]:
            self.drain()
        return self._requests

    def _record(self, number: int, _frame: FrameType | None) -> None:
        self._requests += 1
        if self.kind is not None:
            self.urgent = True
            return
        self.kind = StopKind.INTERRUPTED if number == signal.SIGINT else StopKind.TERMINATED

    def on_check(self, callback: Callable[[], None]) -> None:
        """`callback` is what `check` does: it looks for requests from other processes."""
        self._on_check = callback

    def check(self) -> None:
        self._on_check()

    def ask(self, *, urgent: bool) -> None:
        """Asks for a stop, as a signal does."""
        if self.kind is None or (urgent and not self.urgent):
            self._requests += 1
        self.kind = self.kind or StopKind.STOPPED
        self.urgent = self.urgent or urgent

    def drain(self) -> None:
        """Empties the wake-up pipe, then checks for requests."""
        try:
            while os.read(self.fd, 512):
                pass
        except BlockingIOError:
            pass
        self.check()

    def wait(self, seconds: float, unless: Callable[[], bool] = lambda: False) -> bool:
        """Sleeps until the time is over or `unless` is true. Returns True if a stop was asked for meanwhile."""
        import select
        import time

        end = time.monotonic() + seconds
        while self.kind is None:
            left = end - time.monotonic()
            if left <= 0 or unless():
                return False
            select.select([self.fd], [], [], min(left, _CHECK_EVERY))
            self.drain()
        return True


def _open_bell(path: Path) -> int | None:
    """Creates the FIFO; None where the file system cannot have one."""
    try:
        path.unlink(missing_ok=True)
        os.mkfifo(path, 0o600)
        return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
