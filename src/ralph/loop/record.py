"""Takes an agent's bytes: to disk first, then through the reader, then to the journal and the screen."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from ralph.judging.usage import add_usage
from ralph.loop.limits import Limits, budget_reached
from ralph.transcripts.events import Usage
from ralph.transcripts.rtf1 import SENTINEL

if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.journal.appender import Appender
    from ralph.judging.observe import Observation
    from ralph.judging.output import OutputReader
    from ralph.transcripts.events import TranscriptEvent

#: An agent often reaches a limit with its very last line; in this time it can still exit by itself, and be done.
_GRACE = 1.5

_RTF1 = SENTINEL.encode() + b"{"


class Budget(msgspec.Struct, frozen=True):
    """What is left for an iteration. 0 disables a limit."""

    limits: Limits = Limits()
    #: used by the iterations before
    used: Usage = Usage()
    #: when the run started, by the monotonic clock
    run_started: float = 0.0

    @property
    def limited(self) -> bool:
        return bool(self.limits.runtime or self.limits.cost or self.limits.tokens)

    @property
    def run_ends(self) -> float | None:
        return self.run_started + self.limits.runtime if self.limits.runtime else None


class Recorder:
    """The sink of one iteration."""

    def __init__(
        self,
        reader: OutputReader,
        observation: Observation,
        raw: tuple[Appender, Appender],
        emit: Callable[[list[TranscriptEvent]], None],
        *,
        plain: bool = False,
        stored: bool = False,
        budget: Budget | None = None,
        interruption: Callable[[], str | None] = lambda: None,
        on_tick: Callable[[Recorder], None] = lambda _: None,
    ) -> None:
        """`plain`: the transcript is plain text. `stored`: the runner writes the raw files.
        `interruption` returns a reason to end the agent that has nothing to do with its output."""
        self._reader = reader
        self.observation = observation
        self._raw_out, self._raw_err = raw
        self._emit_events = emit
        self._plain = plain
        self._stored = stored
        self._budget = budget or Budget()
        self._interruption = interruption
        self._on_tick = on_tick
        self._over_since = 0.0
        self.last_output = time.monotonic()
        self.looks_like_rtf1 = False

    def stdout(self, chunk: bytes) -> None:
        if not self._stored:
            self._raw_out.write(chunk)
        self.last_output = time.monotonic()
        if self._plain and _RTF1 in chunk:
            self.looks_like_rtf1 = True
        self._emit(self._reader.stdout(chunk))

    def stderr(self, chunk: bytes) -> None:
        if not self._stored:
            self._raw_err.write(chunk)
        self.last_output = time.monotonic()
        self._emit(self._reader.stderr(chunk))

    def aside(self, chunk: bytes) -> None:
        self.last_output = time.monotonic()
        self._emit(self._reader.aside(chunk))

    def add(self, events: list[TranscriptEvent]) -> None:
        """Events that come from elsewhere than the streams."""
        self._emit(self._reader.add(events))

    def exited(self) -> None:
        self._emit(self._reader.exited())

    def tick(self) -> None:
        self._on_tick(self)

    def stop_reason(self) -> str | None:
        return self._interruption() or self._over_budget()

    def _over_budget(self) -> str | None:
        budget = self._budget
        if not budget.limited:
            return None
        now = time.monotonic()
        used = add_usage(budget.used, self.observation.used(cut_short=True))
        reason = budget_reached(budget.limits, used, now - budget.run_started)
        if reason is None:
            self._over_since = 0.0  # the agent's own total may be lower than what its messages reported
            return None
        if budget.run_ends is not None and now >= budget.run_ends:
            return reason  # the clock reached this limit, not the agent's last line
        self._over_since = self._over_since or now
        return reason if now >= self._over_since + _GRACE else None

    def deadline(self) -> float | None:
        moments = [] if self._budget.run_ends is None else [self._budget.run_ends]
        if self._over_since:
            moments.append(self._over_since + _GRACE)
        return min(moments, default=None)

    def finished(self) -> bool:
        return self.observation.finished

    def finish(self) -> None:
        """Takes what the reader still holds, and closes the raw files."""
        self._emit(self._reader.end())
        self._raw_out.close()
        self._raw_err.close()

    def _emit(self, events: list[TranscriptEvent]) -> None:
        if events:
            self._emit_events(events)
