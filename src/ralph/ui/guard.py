"""A screen that may go away in the middle of a run: a closed pipe, a full disk."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.loop.screen import Screen, Status
    from ralph.transcripts.events import TranscriptEvent


class GuardedScreen:
    """Passes everything on. When nobody can be shown anything any more, the run ends as after a SIGTERM: in order,
    with the agent stopped and the journal whole. `ending` tells whether it is to end anyway."""

    def __init__(self, inner: Screen, ending: Callable[[], bool] = lambda: False) -> None:
        self._inner: Screen | None = inner
        self._ending = ending

    def show(self, events: list[TranscriptEvent], lines: bytes) -> None:
        if self._inner is not None:
            try:
                self._inner.show(events, lines)
            except OSError as error:
                self._gone(error)

    def status(self, status: Status) -> None:
        if self._inner is not None:
            try:
                self._inner.status(status)
            except OSError as error:
                self._gone(error)

    def close(self) -> None:
        if self._inner is not None:
            try:
                self._inner.close()
            except OSError as error:
                self._gone(error)

    def _gone(self, error: OSError) -> None:
        self._inner = None
        try:
            sys.stderr.write(f"ralph: the run ends: its output cannot be written any more ({error.strerror})\n")
        except OSError:
            pass  # stderr may have gone the same way; the journal tells
        if not self._ending():  # a second signal would leave the agent no time to end in order
            signal.raise_signal(signal.SIGTERM)
