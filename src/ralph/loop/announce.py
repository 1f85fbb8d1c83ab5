"""How a run speaks: events to the journal and then to the screen, and the line that says what is going on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ralph.judging.observe import add_usage, known_total
from ralph.transcripts import meta
from ralph.ui.screen import Status

if TYPE_CHECKING:
    from ralph.journal.writer import JournalWriter
    from ralph.loop.limits import Limits
    from ralph.loop.record import Recorder
    from ralph.loop.state import RunState
    from ralph.transcripts.events import TranscriptEvent
    from ralph.ui.screen import Screen


class Announcer:
    """`started` is when the run would have begun if all of it had been run at once, on the monotonic clock."""

    def __init__(self, journal: JournalWriter, screen: Screen, state: RunState, limits: Limits) -> None:
        self._journal = journal
        self._screen = screen
        self._state = state
        self._limits = limits
        self.started = time.monotonic() - state.elapsed

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    @property
    def maximum(self) -> int:
        """The number that the last iteration can have: those that ran into limits do not count."""
        return self._limits.iterations + self._state.uncounted if self._limits.iterations else 0

    def emit(self, events: list[TranscriptEvent]) -> None:
        """To the journal, then to the screen."""
        self._screen.show(*self._journal.record(events))

    def note(self, text: str) -> None:
        self.emit([meta.notice(text)])

    def tick(self, recorder: Recorder) -> None:
        """While an agent runs."""
        late = self._journal.overdue(1.0)
        if late[0]:
            self._screen.show(*late)
        usage = add_usage(self._state.usage, recorder.observation.spent)
        self._screen.status(
            Status(
                iteration=self._state.iteration,
                maximum=self.maximum,
                elapsed=self.elapsed,
                silent=time.monotonic() - recorder.last_output,
                tokens=known_total(usage),
                cost=usage.cost_usd,
                tools=recorder.observation.tools.started,
                open_tool=next(reversed(recorder.observation.open_tools.values()), None),
            )
        )

    def checking(self, command: str, seconds: float) -> None:
        self._screen.status(self._idle(seconds, checking=self._safe(command)))

    def waiting(self, why: str, left: float) -> None:
        self._screen.status(self._idle(left, waiting=self._safe(why)))

    def pausing(self, since: float, go_on: str) -> None:
        self._screen.status(self._idle(since, elapsed=self.elapsed - since, paused=go_on))

    def held_for(self, seconds: float) -> None:
        self.started += seconds  # a pause is no run time

    def _idle(
        self,
        seconds: float,
        *,
        elapsed: float | None = None,
        checking: str | None = None,
        waiting: str | None = None,
        paused: str | None = None,
    ) -> Status:
        """What is shown while no agent runs."""
        return Status(
            iteration=self._state.iteration,
            maximum=self.maximum,
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

    def _safe(self, text: str) -> str:
        return self._journal.masker.text(text)
