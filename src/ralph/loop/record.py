"""Takes an agent's bytes: to disk first, then through the adapter, then to whoever looks."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from ralph.judging.observe import Observation, add_usage
from ralph.judging.topics import TopicReader
from ralph.loop.limits import budget_reached
from ralph.transcripts.framing import LineFramer
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.rtf1 import SENTINEL

if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.journal.appender import Appender
    from ralph.loop.limits import Limits
    from ralph.transcripts.events import TranscriptEvent, Usage
    from ralph.transcripts.safe import SafeAdapter

# CSI and OSC sequences, other two-byte escapes; the tail of a line may hold an unfinished one.
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])|\x1b\Z"
)

#: A limit is often reached by an agent's very last line; in this time it can still end by itself, and be done.
_SPARE = 1.5

_RTF1 = SENTINEL.encode() + b"{"


def from_terminal(line: str) -> str:
    """What a line written to a terminal looks like: without escape sequences, overwritten text gone."""
    if "\x1b" in line:
        line = _ESCAPES.sub("", line)
    line = line.rstrip("\r")
    if "\r" in line:
        line = line.rpartition("\r")[2]
    if "\b" in line:
        kept: list[str] = []
        for character in line:
            if character != "\b":
                kept.append(character)
            elif kept:
                kept.pop()
        line = "".join(kept)
    return line


class Recorder:
    """The sink of one iteration."""

    def __init__(
        self,
        adapter: SafeAdapter,
        observation: Observation,
        raw: tuple[Appender, Appender],
        emit: Callable[[list[TranscriptEvent]], None],
        *,
        pty: bool = False,
        stored: bool = False,
    ) -> None:
        """`stored`: the runner writes the raw files."""
        self.adapter = adapter
        self.observation = observation
        self._raw_out, self._raw_err = raw
        self._stored = stored
        self._emit = emit
        self._pty = pty
        self._out = LineFramer()
        self._err = LineFramer()
        self.bytes_out = 0
        self.bytes_err = 0
        self.last_output = time.monotonic()
        self.looks_like_rtf1 = False
        self._plain = adapter.name == "plain"
        self.on_tick: Callable[[], None] = lambda: None
        #: why the agent must be ended for a reason that lies outside of it
        self.interruption: Callable[[], str | None] = lambda: None
        self.budget: tuple[Limits, Usage, float] | None = None
        self._over_since = 0.0
        self._topics = TopicReader()
        self._aside: tuple[LineFramer, Callable[[str], list[TranscriptEvent]]] | None = None

    def stdout(self, chunk: bytes) -> None:
        if not self._stored:
            self._raw_out.write(chunk)
        self.bytes_out += len(chunk)
        self.last_output = time.monotonic()
        if self._plain and _RTF1 in chunk:
            self.looks_like_rtf1 = True
        lines = self._out.feed(chunk)
        if lines:
            self._take(self.adapter.feed_lines(self._clean(lines)))

    def stderr(self, chunk: bytes) -> None:
        if not self._stored:
            self._raw_err.write(chunk)
        self.bytes_err += len(chunk)
        self.last_output = time.monotonic()
        lines = self._err.feed(chunk)
        if lines:
            self._take(self.adapter.feed_stderr_lines(lines))

    def listen(self, read: Callable[[str], list[TranscriptEvent]]) -> Callable[[bytes], None]:
        """Who takes a third stream; `read` knows what its lines mean."""
        framer = LineFramer()
        self._aside = (framer, read)

        def take(chunk: bytes) -> None:
            self.last_output = time.monotonic()
            self._take([event for line in framer.feed(chunk) for event in read(line)])

        return take

    def add(self, events: list[TranscriptEvent]) -> None:
        """What is known beyond the streams."""
        self._take(events)

    def tick(self) -> None:
        self.on_tick()

    def stop_reason(self) -> str | None:
        return self.interruption() or self._over_budget()

    def _over_budget(self) -> str | None:
        if self.budget is None:
            return None
        limits, before, run_started = self.budget
        if not (limits.runtime or limits.cost or limits.tokens):
            return None
        used = add_usage(before, self.observation.spent)
        now = time.monotonic()
        reason = budget_reached(limits, used, now - run_started)
        if reason is None:
            return None
        if limits.runtime and now >= run_started + limits.runtime:
            return reason  # no last line of the agent's brought us here
        self._over_since = self._over_since or now
        return reason if now >= self._over_since + _SPARE else None

    def deadline(self) -> float | None:
        if self.budget is None:
            return None
        limits, _, run_started = self.budget
        moments = [run_started + limits.runtime] if limits.runtime else []
        if self._over_since:
            moments.append(self._over_since + _SPARE)
        return min(moments, default=None)

    def finished(self) -> bool:
        """Its own last word was said, or it waits for a login, for which there is nobody."""
        seen = self.observation
        last_word = seen.result is not None or (seen.error is not None and seen.error.get("class") == ErrorClass.AUTH)
        return last_word and not seen.open_tools

    def finish(self) -> None:
        """Lines without their newline, and what the adapter held back."""
        self._take(self.adapter.feed_lines(self._clean(self._out.flush())))
        self._take(self.adapter.feed_stderr_lines(self._err.flush()))
        if self._aside is not None:
            framer, read = self._aside
            self._take([event for line in framer.flush() for event in read(line)])
        self._take(self.adapter.flush())
        self._raw_out.close()
        self._raw_err.close()

    def _clean(self, lines: list[str]) -> list[str]:
        return [from_terminal(line) for line in lines] if self._pty else lines

    def _take(self, events: list[TranscriptEvent]) -> None:
        if events:
            self.observation.feed(events)
            self._emit(self._topics.extend(events))
