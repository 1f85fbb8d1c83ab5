"""Ctrl-C, TERM and `ralph stop`, as a value that the loop reads instead of an exception out of nowhere."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import FrameType, TracebackType

#: Where no bell can be made, somebody looks this often.
_LOOK = 1.0


class StopKind(StrEnum):
    INTERRUPTED = "interrupted"  # Ctrl-C
    TERMINATED = "terminated"  # SIGTERM, SIGHUP
    STOPPED = "stopped"  # `ralph stop`


class StopSwitch:
    """While entered, signals are noted here and wake up whoever selects on `fd`.

    The first signal asks for a clean stop; a second one asks for it at once (`urgent`). With `bell`, the path of a
    FIFO that is made, other processes can wake us up as well; `look` is called then, and on every tick.
    """

    def __init__(self, bell: Path | None = None) -> None:
        self.kind: StopKind | None = None
        self.urgent = False
        self._look: Callable[[], None] = lambda: None
        self._bell = bell
        ours = _open_bell(bell) if bell is not None else None
        # One descriptor for both ends of a FIFO: a reader alone would see its end whenever a writer leaves.
        self.fd, self._write = (ours, os.dup(ours)) if ours is not None else os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(self._write, False)
        self._before: dict[signal.Signals, Any] = {}
        self._wakeup_before = -1

    def __enter__(self) -> Self:
        self._wakeup_before = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # `nohup ralph run &` means what it says
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_before)
        os.close(self.fd)
        os.close(self._write)
        if self._bell is not None:
            with suppress(OSError):  # a FIFO that nobody reads would only be in the way of who copies the folder
                self._bell.unlink()

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.kind is not None:
            self.urgent = True
            return
        self.kind = StopKind.INTERRUPTED if number == signal.SIGINT else StopKind.TERMINATED

    def ask(self, *, urgent: bool) -> None:
        """As a signal does, but by somebody who says whether it is urgent."""
        self.kind = self.kind or StopKind.STOPPED
        self.urgent = self.urgent or urgent

    def watch(self, look: Callable[[], None]) -> None:
        """From now on, `look` is called on every tick and whenever another process wakes us up."""
        self._look = look

    def look(self) -> None:
        self._look()

    def drain(self) -> None:
        """Empties the wake-up pipe, and looks who it was."""
        try:
            while os.read(self.fd, 512):
                pass
        except BlockingIOError:
            pass
        self.look()

    def wait(self, seconds: float, unless: Callable[[], bool] = lambda: False) -> bool:
        """Sleeps, also no longer than `unless` is false; True if a stop was asked for before the time was over."""
        import select
        import time

        end = time.monotonic() + seconds
        while self.kind is None:
            left = end - time.monotonic()
            if left <= 0 or unless():
                return False
            select.select([self.fd], [], [], min(left, _LOOK))
            self.drain()
        return True


def _open_bell(path: Path) -> int | None:
    """None where there can be no FIFO; a look now and then does it, too."""
    try:
        path.unlink(missing_ok=True)
        os.mkfifo(path, 0o600)
        return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
