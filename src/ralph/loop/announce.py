"""Sends events to the journal and then to the screen, and keeps the live line up to date."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ralph.judging.usage import add_usage, known_total
from ralph.loop.screen import Status
from ralph.transcripts import meta

if TYPE_CHECKING:
    from ralph.journal.writer import JournalWriter
    from ralph.loop.record import Recorder
    from ralph.loop.screen import Screen
    from ralph.transcripts.events import TranscriptEvent, Usage


class Announcer:
    """`started` is when the run would have started had it run without a break, by the monotonic clock."""

    def __init__(self, journal: JournalWriter, screen: Screen, elapsed: float) -> None:
        """`elapsed` is how many seconds the run has taken before now."""
        self._journal = journal
        self._screen = screen
        self._iteration = 0
        self._maximum = 0
        self.started = time.monotonic() - elapsed

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    def at(self, iteration: int, maximum: int) -> None:
        """The iteration that the live line names, and the number of the last one that is allowed."""
        self._iteration, self._maximum = iteration, maximum

    def emit(self, events: list[TranscriptEvent]) -> None:
        """To the journal, then to the screen."""
        self._screen.show(*self._journal.record(events))

    def note(self, text: str) -> None:
        self.emit([meta.notice(text)])

    def tick(self, recorder: Recorder, before: Usage) -> None:
        """While an agent runs. `before` is the usage of the iterations before."""
        late = self._journal.overdue(1.0)
        if late[0]:
            self._screen.show(*late)
        seen = recorder.observation
        usage = add_usage(before, seen.used(cut_short=True))
        self._screen.status(
            Status(
                iteration=self._iteration,
                maximum=self._maximum,
                elapsed=self.elapsed,
                silent=time.monotonic() - recorder.last_output,
                tokens=known_total(usage),
                cost=usage.cost_usd,
                tools=seen.tools.started,
                open_tool=next(reversed(seen.open_tools.values()), None),
                at_least=usage.at_least,
            )
        )

    def checking(self, command: str, seconds: float) -> None:
        self._screen.status(self._idle(seconds, checking=self._masked(command)))

    def waiting(self, why: str, left: float) -> None:
        self._screen.status(self._idle(left, waiting=self._masked(why)))

    def pausing(self, seconds: float, resume: str) -> None:
        self._screen.status(self._idle(seconds, elapsed=self.elapsed - seconds, paused=resume))

    def paused(self, seconds: float) -> None:
        """A pause of `seconds` is over."""
        self.started += seconds  # a pause is not run time

    def _idle(
        self,
        seconds: float,
        *,
        elapsed: float | None = None,
        checking: str | None = None,
        waiting: str | None = None,
        paused: str | None = None,
    ) -> Status:
        """The live line while no agent runs."""
        return Status(
            iteration=self._iteration,
            maximum=self._maximum,
            elapsed=self.elapsed if elapsed is None else elapsed,
            silent=seconds,
            tokens=None,
            cost=None,
            tools=0,
            open_tool=None,
            checking=checking,
            waiting=waiting,
            paused=paused,
        )

    def _masked(self, text: str) -> str:
        return self._journal.masker.text(text)
