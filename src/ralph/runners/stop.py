"""Ctrl-C and TERM, as a value that the loop reads instead of an exception out of nowhere."""

from __future__ import annotations

import os
import signal
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import FrameType, TracebackType


class StopKind(StrEnum):
    INTERRUPTED = "interrupted"  # Ctrl-C
    TERMINATED = "terminated"  # SIGTERM, SIGHUP


class StopSwitch:
    """While entered, signals are noted here and wake up whoever selects on `fd`.

    The first signal asks for a clean stop; a second one asks for it at once (`urgent`).
    """

    def __init__(self) -> None:
        self.kind: StopKind | None = None
        self.urgent = False
        self.fd, self._write = os.pipe()
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

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.kind is not None:
            self.urgent = True
            return
        self.kind = StopKind.INTERRUPTED if number == signal.SIGINT else StopKind.TERMINATED

    def drain(self) -> None:
        """Empties the wake-up pipe."""
        try:
            while os.read(self.fd, 512):
                pass
        except BlockingIOError:
            pass

    def wait(self, seconds: float) -> bool:
        """Sleeps; True if a stop was asked for before the time was over."""
        import select
        import time

        end = time.monotonic() + seconds
        while self.kind is None:
            left = end - time.monotonic()
            if left <= 0:
                return False
            select.select([self.fd], [], [], left)
            self.drain()
        return True
