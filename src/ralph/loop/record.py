"""Takes an agent's bytes: to disk first, then through the adapter, then to whoever looks."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from ralph.loop.limits import budget_reached
from ralph.loop.observe import Observation, add_usage
from ralph.runners.framing import LineFramer
from ralph.transcripts.rtf1 import SENTINEL

if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.journal.writer import Appender
    from ralph.loop.limits import Limits
    from ralph.transcripts.base import TranscriptAdapter
    from ralph.transcripts.events import TranscriptEvent, Usage

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
        adapter: TranscriptAdapter,
        observation: Observation,
        raw: tuple[Appender, Appender],
        emit: Callable[[list[TranscriptEvent]], None],
        *,
        pty: bool = False,
    ) -> None:
        self.adapter = adapter
        self.observation = observation
        self._raw_out, self._raw_err = raw
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
        self.budget: tuple[Limits, Usage, float] | None = None
        self._over_since = 0.0

    def stdout(self, chunk: bytes) -> None:
        self._raw_out.write(chunk)
        self.bytes_out += len(chunk)
        self.last_output = time.monotonic()
        if self._plain and _RTF1 in chunk:
            self.looks_like_rtf1 = True
        lines = self._out.feed(chunk)
        if lines:
            self._handle(self._clean(lines), self.adapter.feed)

    def stderr(self, chunk: bytes) -> None:
        self._raw_err.write(chunk)
        self.bytes_err += len(chunk)
        self.last_output = time.monotonic()
        lines = self._err.feed(chunk)
        if lines:
            self._handle(lines, self.adapter.feed_stderr)

    def tick(self) -> None:
        self.on_tick()

    def stop_reason(self) -> str | None:
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
        self._over_since = self._over_since or now
        return reason if now - self._over_since > _SPARE else None

    def finished(self) -> bool:
        return self.observation.result is not None and not self.observation.open_tools

    def finish(self) -> None:
        """Lines without their newline, and what the adapter held back."""
        self._handle(self._clean(self._out.flush()), self.adapter.feed)
        self._handle(self._err.flush(), self.adapter.feed_stderr)
        self._take(self.adapter.flush())
        self._raw_out.close()
        self._raw_err.close()

    def _clean(self, lines: list[str]) -> list[str]:
        return [from_terminal(line) for line in lines] if self._pty else lines

    def _handle(self, lines: list[str], feed: Callable[[str], list[TranscriptEvent]]) -> None:
        events: list[TranscriptEvent] = []
        for line in lines:
            events += feed(line)
        self._take(events)

    def _take(self, events: list[TranscriptEvent]) -> None:
        if events:
            self.observation.feed(events)
            self._emit(events)
