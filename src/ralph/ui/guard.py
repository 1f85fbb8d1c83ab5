"""A screen that may fail during a run: its pipe is closed, its disk is full."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.loop.screen import Screen, Status
    from ralph.transcripts.events import TranscriptEvent


class GuardedScreen:
    """Passes everything on to another screen. If that fails, it ends the run as SIGTERM does.

    `ending` tells whether the run is ending already.
    """

    def __init__(self, inner: Screen, ending: Callable[[], bool] = lambda: False) -> None:
        self._inner: Screen | None = inner
        self._ending = ending

    def show(self, events: list[TranscriptEvent], lines: bytes) -> None:
        if self._inner is not None:
            try:
                self._inner.show(events, lines)
            except OSError as error:
                self._failed(error)

    def status(self, status: Status) -> None:
        if self._inner is not None:
            try:
                self._inner.status(status)
            except OSError as error:
                self._failed(error)

    def close(self) -> None:
        if self._inner is not None:
            try:
                self._inner.close()
            except OSError as error:
                self._failed(error)

    def _failed(self, error: OSError) -> None:
        self._inner = None
        try:
            sys.stderr.write(f"ralph: ending the run, because its output cannot be written: {error.strerror}\n")
        except OSError:
            pass  # stderr may have failed too; the journal has the reason
        if not self._ending():  # a second signal would cut the agent's grace period short
            signal.raise_signal(signal.SIGTERM)
