"""Secrets that go over several events: an agent may print a line in pieces, each as an event of its own."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from ralph.masking.finder import Finder, Span, mark, merged
from ralph.masking.pem import block_spans
from ralph.masking.tails import CONTEXT, tool_key
from ralph.transcripts.events import Meta, Text, ToolEnd, ToolOutput, TranscriptEvent
from ralph.transcripts.meta import OURS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: Fewer characters of a secret than these tell nothing; a text that ends with them is not held back.
_LEAST = 4
#: A piece that goes on with a key that could have ended before it: shorter and without a number, it is the next word.
_GOES_ON = 16
_HELD_EVENTS = 256
_HELD_TEXT = 256 << 10


def key_of(event: TranscriptEvent) -> str | None:
    """Which text an event goes on with."""
    if type(event) is Text:
        return event.tag.value
    return tool_key(event.tool.id) if type(event) is ToolOutput else None


class _Stream(msgspec.Struct):
    """One text, as far as it has not gone out, and the end of what has."""

    context: str = ""
    within: bool = False
    #: the context ends with what may be the beginning of a secret
    open: bool = False


class Joiner:
    """Holds events back only while the end of one may be the beginning of a secret."""

    def __init__(self, finder: Finder[str], masked: Callable[[TranscriptEvent], TranscriptEvent]) -> None:
        self._finder = finder
        self._masked = masked
        self._streams: dict[str, _Stream] = {}
        self._held: list[TranscriptEvent] = []
        self._since = 0.0

    @property
    def busy(self) -> bool:
        return bool(self._held) or any(s.open or s.within for s in self._streams.values())

    def waits_for(self) -> float:
        """For how long something has been held back."""
        return time.monotonic() - self._since if self._held else 0.0

    def forget(self) -> None:
        """What was printed so far has no continuation."""
        self._streams.clear()

    def remember(self, tails: Mapping[str, str]) -> None:
        """The ends of what has gone out since, unexamined."""
        for key, tail in tails.items():
            stream = self._streams.setdefault(key, _Stream())
            stream.context = (stream.context + tail)[-CONTEXT:]

    def end(self, key: str) -> None:
        """Nothing more comes of this text."""
        self._streams.pop(key, None)

    def feed(self, events: list[TranscriptEvent]) -> list[TranscriptEvent]:
        """What can go out now, in order."""
        if not self._held:
            self._since = time.monotonic()
        self._held += events
        size = sum(len(e.text) for e in self._held if isinstance(e, Text | ToolOutput))
        ours = any(isinstance(e, Meta) and e.meta.get("kind") in OURS for e in events)
        return self._settle(everything=ours or len(self._held) > _HELD_EVENTS or size > _HELD_TEXT)

    def flush(self) -> list[TranscriptEvent]:
        return self._settle(everything=True)

    def _settle(self, *, everything: bool) -> list[TranscriptEvent]:
        texts: dict[str, list[int]] = {}
        over: set[str] = set()
        for index, event in enumerate(self._held):
            key = key_of(event)
            if key is not None:
                texts.setdefault(key, []).append(index)
            elif isinstance(event, ToolEnd):
                over.add(tool_key(event.tool.id))
        stop = len(self._held)
        if not everything:
            for key, where in texts.items():
                if key not in over:
                    stop = min(stop, self._open_from(key, where))
        out = list(self._held)
        for key, where in texts.items():
            self._mask(key, where, stop, out, last=everything)
        for key in over:
            if not any(key_of(e) == key for e in self._held[stop:]):
                self._streams.pop(key, None)
        ready = [e if key_of(e) is not None else self._masked(e) for e in out[:stop]]
        self._held = self._held[stop:]
        return ready

    def _joined(self, key: str, where: list[int]) -> str:
        context = self._streams.get(key, _Stream()).context
        return context + "".join(self._held[i].text for i in where)  # type: ignore[union-attr]

    def _open_from(self, key: str, where: list[int]) -> int:
        """The first event that must wait for more of this text."""
        whole = self._joined(key, where)
        start = self._finder.unfinished(whole, _LEAST)
        for span in self._finder.spans(whole):
            if span.open_ended and span.end == len(whole):
                start = min(start, span.start)
        if start == len(whole):
            return len(self._held)
        at = len(whole)
        for index in reversed(where):
            at -= len(self._held[index].text)  # type: ignore[union-attr]
            if at <= start:
                return index
        return where[0]

    def _mask(self, key: str, where: list[int], stop: int, out: list[TranscriptEvent], *, last: bool) -> None:
        stream = self._streams.setdefault(key, _Stream())
        parts = [self._held[i].text for i in where]  # type: ignore[union-attr]
        spans, within = self._spans(stream, parts, last=last)
        at = len(stream.context)
        released = stream.context
        for index, text in zip(where, parts, strict=True):
            if index < stop:
                shown = _cut(text, at, spans)
                if shown is not text:
                    out[index] = msgspec.structs.replace(out[index], text=shown)
                released += text
            at += len(text)
        gone = all(index < stop for index in where)
        start = self._finder.unfinished(released, _LEAST) if gone and last else len(released)
        stream.open = start < len(released)
        stream.within = within if gone else stream.within
        stream.context = released[min(start, max(0, len(released) - CONTEXT)) :]

    def _spans(self, stream: _Stream, parts: list[str], *, last: bool) -> tuple[list[Span], bool]:
        """Those of each piece by itself, and those that go over several."""
        spans: list[Span] = []
        edges: list[int] = []
        at = len(stream.context)
        for part in parts:
            edges.append(at)
            spans += [Span(at + s.start, at + s.end, s.label, s.open_ended) for s in self._finder.spans(part)]
            at += len(part)
        whole = stream.context + "".join(parts)
        ends = {span.end for span in spans}
        for span in self._finder.spans(whole):
            edge = next((e for e in edges if span.start < e < span.end), None)
            if edge is None:
                continue
            was_whole = edge in ends or (edge == edges[0] and self._ended(stream.context))
            rest = whole[edge : span.end]
            if span.open_ended and was_whole and len(rest) < _GOES_ON and not any(c.isdigit() for c in rest):
                continue
            spans.append(span)
        if last and (most := self._finder.most_of_one(whole)) is not None:
            spans.append(most)
        begun = len(stream.context) if stream.within else 0
        blocks, within = block_spans(whole[begun:], within=stream.within)
        spans += [Span(begun + b.start, begun + b.end, b.label) for b in blocks]
        return merged(spans), within

    def _ended(self, context: str) -> bool:
        return any(span.end == len(context) for span in self._finder.spans(context))


def _cut(text: str, at: int, spans: list[Span]) -> str:
    """A piece that stands at `at` of the whole; a mark stands in the piece in which its secret begins."""
    end = at + len(text)
    parts: list[str] = []
    done = at
    for span in spans:
        if span.end <= at or span.start >= end:
            continue
        parts.append(text[done - at : max(span.start, at) - at])
        if span.start >= at:
            parts.append(mark(span.label))
        done = min(span.end, end)
    return "".join([*parts, text[done - at :]]) if parts else text
