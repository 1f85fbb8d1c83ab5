"""The boundary around an adapter: whatever it does, no line is lost and nothing is raised."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

import msgspec

from ralph.transcripts import meta
from ralph.transcripts.events import Tag, Text, ToolEnd, TranscriptEvent, Usage, UsageEvent

if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.transcripts.base import Capabilities, TranscriptAdapter

_COUNTS = tuple(name for name in Usage.__struct_fields__ if name != "model")
_counts = attrgetter(*_COUNTS)
#: No iteration uses more tokens, dollars or milliseconds.
_MOST = 1e12


def sane(events: list[TranscriptEvent]) -> list[TranscriptEvent]:
    """The same, but a count that cannot be one, such as -1 or 1e308, is not known."""
    # All events of a run come by here, so that nothing is called for those that are as they should be.
    for event in events:
        kind = type(event)
        if kind is Text:
            continue
        if kind is ToolEnd:
            took = event.tool.duration_ms  # type: ignore[union-attr]
            if took is not None and not 0 <= took <= _MOST:
                return [_mended(event) for event in events]
        elif kind is UsageEvent:
            for count in _counts(event.usage):  # type: ignore[union-attr]
                if count is not None and not 0 <= count <= _MOST:
                    return [_mended(event) for event in events]
    return events


def _mended(event: TranscriptEvent) -> TranscriptEvent:
    match event:
        case ToolEnd(tool) if tool.duration_ms is not None and not 0 <= tool.duration_ms <= _MOST:
            return ToolEnd(msgspec.structs.replace(tool, duration_ms=None))
        case UsageEvent(usage):
            return UsageEvent(_possible(usage))
    return event


def _possible(usage: Usage) -> Usage:
    wrong = [name for name in _COUNTS if (n := getattr(usage, name)) is not None and not 0 <= n <= _MOST]
    return msgspec.structs.replace(usage, **dict.fromkeys(wrong))


class SafeAdapter:
    """Runs another adapter, many lines at a time; a line on which it fails becomes a `parse_error` and SYS text."""

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
        """The events of lines of stdout."""
        return self._each(lines, self._inner.feed)

    def feed_stderr_lines(self, lines: list[str]) -> list[TranscriptEvent]:
        """The events of lines of stderr."""
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
