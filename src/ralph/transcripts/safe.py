"""The boundary around an adapter: whatever the adapter does, no line is lost and nothing is raised."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

import msgspec

from ralph.transcripts import meta
from ralph.transcripts.events import Tag, Text, ToolEnd, TranscriptEvent, Usage, UsageEvent

if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.transcripts.base import Capabilities, TranscriptAdapter

_COUNTS = tuple(name for name in Usage.__struct_fields__ if name not in ("model", "interim", "at_least"))
_counts = attrgetter(*_COUNTS)
#: No iteration uses more tokens, dollars or milliseconds than this.
_MOST = 1e12
_WITH_NUMBERS = frozenset({ToolEnd, UsageEvent})


def sane(events: list[TranscriptEvent]) -> list[TranscriptEvent]:
    """Return the events without impossible numbers: a count of -1 or 1e308 becomes unknown."""
    return [_sane(event) if type(event) in _WITH_NUMBERS else event for event in events]


def _sane(event: TranscriptEvent) -> TranscriptEvent:
    match event:
        case ToolEnd(tool) if _impossible(tool.duration_ms):
            return ToolEnd(msgspec.structs.replace(tool, duration_ms=None))
        case UsageEvent(usage) if any(map(_impossible, _counts(usage))):
            wrong = [name for name in _COUNTS if _impossible(getattr(usage, name))]
            return UsageEvent(msgspec.structs.replace(usage, **dict.fromkeys(wrong)))
    return event


def _impossible(count: float | None) -> bool:
    return count is not None and not 0 <= count <= _MOST


class SafeAdapter:
    """Wraps an adapter and feeds it many lines at a time.

    A line on which the adapter fails becomes a `parse_error` and SYS text.
    """

    def __init__(self, inner: TranscriptAdapter) -> None:
        self._inner = inner
        self.name = inner.name
        self.pieces = inner.pieces

    @property
    def capabilities(self) -> Capabilities:
        return self._inner.capabilities

    @property
    def structured(self) -> bool:
        return self._inner.structured

    def feed_lines(self, lines: list[str]) -> list[TranscriptEvent]:
        """Return the events of lines of stdout."""
        return self._each(lines, self._inner.feed)

    def feed_stderr_lines(self, lines: list[str]) -> list[TranscriptEvent]:
        """Return the events of lines of stderr."""
        return self._each(lines, self._inner.feed_stderr)

    def flush(self) -> list[TranscriptEvent]:
        try:
            return sane(self._inner.flush())
        except Exception as error:  # noqa: BLE001 - a boundary: an adapter's bug must not end a run
            return [meta.parse_error(f"adapter {self.name} failed at the end: {error!r}", "")]

    def _each(self, lines: list[str], feed: Callable[[str], list[TranscriptEvent]]) -> list[TranscriptEvent]:
        events: list[TranscriptEvent] = []
        for line in lines:
            try:
                events += feed(line)
            except Exception as error:  # noqa: BLE001 - a boundary: an adapter's bug must not end a run
                message = f"adapter {self.name} failed on this line: {error!r}"
                events += [meta.parse_error(message, line), Text(Tag.SYS, line)]
        return sane(events)
