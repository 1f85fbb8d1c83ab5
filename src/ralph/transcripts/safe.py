"""The boundary around an adapter: whatever it does, no line is lost and nothing is raised."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

import msgspec

from ralph.transcripts import meta
from ralph.transcripts.base import Block, Capabilities, TranscriptAdapter
from ralph.transcripts.events import Tag, Text, ToolEnd, TranscriptEvent, Usage, UsageEvent

if TYPE_CHECKING:
    from collections.abc import Callable

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


class SafeAdapter(TranscriptAdapter):
    """Runs another adapter; a line on which it fails becomes a `parse_error` and SYS text."""

    def __init__(self, inner: TranscriptAdapter) -> None:
        self._inner = inner
        self.name = inner.name
        self.pieces = inner.pieces
        # Most adapters have no quicker way for many lines; then nobody needs to ask them.
        own = type(inner)
        self._out_block = inner.feed_block if own.feed_block is not TranscriptAdapter.feed_block else None
        self._err_block = (
            inner.feed_stderr_block if own.feed_stderr_block is not TranscriptAdapter.feed_stderr_block else None
        )

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        return self._inner.capabilities

    @property
    def structured(self) -> bool:  # type: ignore[override]
        return self._inner.structured

    def feed(self, line: str) -> list[TranscriptEvent]:
        return sane(self._each([line], self._inner.feed))

    def feed_stderr(self, line: str) -> list[TranscriptEvent]:
        return sane(self._each([line], self._inner.feed_stderr))

    def feed_lines(self, lines: list[str]) -> list[TranscriptEvent]:
        return sane(self._many(lines, self._inner.feed, self._out_block))

    def feed_stderr_lines(self, lines: list[str]) -> list[TranscriptEvent]:
        return sane(self._many(lines, self._inner.feed_stderr, self._err_block))

    def _each(self, lines: list[str], feed: Callable[[str], list[TranscriptEvent]]) -> list[TranscriptEvent]:
        events: list[TranscriptEvent] = []
        for line in lines:
            try:
                events += feed(line)
            except Exception as error:  # noqa: BLE001 - a boundary: an adapter's bug must not end a run
                message = f"adapter {self.name} failed on this line: {error!r}"
                events += [meta.parse_error(message, line), Text(Tag.SYS, line)]
        return events

    def _many(
        self,
        lines: list[str],
        feed: Callable[[str], list[TranscriptEvent]],
        feed_block: Callable[[Block], None] | None,
    ) -> list[TranscriptEvent]:
        if feed_block is None:
            return self._each(lines, feed)
        block = Block(lines)
        while block.at < len(lines):
            try:
                feed_block(block)
            except Exception as error:  # noqa: BLE001 - a boundary: an adapter's bug must not end a run
                # What was taken is done; all other lines go their own way, now and for the rest of the run.
                self._out_block = self._err_block = None
                message = f"adapter {self.name} failed on many lines from this one on: {error!r}"
                block.events.append(meta.parse_error(message, "".join(lines[block.at : block.at + 1])))
                break
            if block.at < len(lines):
                block.take(block.at + 1, self._each([lines[block.at]], feed))
        if block.at < len(lines):
            block.events += self._each(lines[block.at :], feed)
        return block.events

    def flush(self) -> list[TranscriptEvent]:
        try:
            return sane(self._inner.flush())
        except Exception as error:  # noqa: BLE001 - a boundary: an adapter's bug must not end a run
            return [meta.parse_error(f"adapter {self.name} failed at the end: {error!r}", "")]
