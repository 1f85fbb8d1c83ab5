"""Masks secrets that are split across events: an agent may print a line in pieces, each in an event of its own."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from ralph.masking.finder import Finder, Span, mark, merged
from ralph.masking.pem import block_spans
from ralph.masking.text_ends import CONTEXT, tool_key
from ralph.transcripts.events import Meta, Text, ToolEnd, ToolOutput, TranscriptEvent
from ralph.transcripts.meta import OURS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: Fewer characters of a secret reveal nothing; a text that ends with them is not held back.
_LEAST = 4
#: After a key that may be complete, a piece that is shorter than this and has no digit is the next word, not its rest.
_SHORT_WORD = 16
_HELD_EVENTS = 256
_HELD_TEXT = 256 << 10


def key_of(event: TranscriptEvent) -> str | None:
    """The text that an event continues: that of a tag, or the output of a tool."""
    if type(event) is Text:
        return event.tag.value
    return tool_key(event.tool.id) if type(event) is ToolOutput else None


class _Stream(msgspec.Struct, frozen=True):
    """What is known about one text: its end, as far as it was passed on."""

    context: str = ""
    #: it ends inside a private key
    within: bool = False
    #: the context ends with what may be the start of a secret
    open: bool = False


class SplitSecretMasker:
    """Holds events back only while the end of one may be the start of a secret."""

    def __init__(self, finder: Finder[str], masked: Callable[[TranscriptEvent], TranscriptEvent]) -> None:
        self._finder = finder
        self._masked = masked
        self._streams: dict[str, _Stream] = {}
        self._held: list[TranscriptEvent] = []
        self._since = 0.0

    @property
    def busy(self) -> bool:
        return bool(self._held) or any(s.open or s.within for s in self._streams.values())

    def held_for(self) -> float:
        """For how many seconds events have been held back."""
        return time.monotonic() - self._since if self._held else 0.0

    def forget(self) -> None:
        """Called when another process begins: no earlier text continues."""
        self._streams.clear()

    def remember(self, tails: Mapping[str, str]) -> None:
        """Takes the ends of texts that were passed on without coming through here."""
        for key, tail in tails.items():
            stream = self._streams.get(key, _Stream())
            self._streams[key] = msgspec.structs.replace(stream, context=(stream.context + tail)[-CONTEXT:])

    def end(self, key: str) -> None:
        """This text has ended."""
        self._streams.pop(key, None)

    def feed(self, events: list[TranscriptEvent]) -> list[TranscriptEvent]:
        """Takes the next events; returns the masked events that can be passed on now, in order."""
        if not self._held:
            self._since = time.monotonic()
        self._held += events
        size = sum(len(e.text) for e in self._held if isinstance(e, Text | ToolOutput))
        ours = any(isinstance(e, Meta) and e.meta.get("kind") in OURS for e in events)
        return self._settle(everything=ours or len(self._held) > _HELD_EVENTS or size > _HELD_TEXT)

    def flush(self) -> list[TranscriptEvent]:
        """The events that are held back, masked."""
        return self._settle(everything=True)

    def _settle(self, *, everything: bool) -> list[TranscriptEvent]:
        texts: dict[str, list[int]] = {}
        ended: set[str] = set()
        for index, event in enumerate(self._held):
            key = key_of(event)
            if key is not None:
                texts.setdefault(key, []).append(index)
            elif isinstance(event, ToolEnd):
                ended.add(tool_key(event.tool.id))
        stop = len(self._held)
        if not everything:
            for key, where in texts.items():
                if key not in ended:
                    stop = min(stop, self._open_from(key, where))
        out = list(self._held)
        for key, where in texts.items():
            self._mask(key, where, stop, out, last=everything)
        for key in ended:
            if not any(key_of(e) == key for e in self._held[stop:]):
                self._streams.pop(key, None)
        ready = [e if key_of(e) is not None else self._masked(e) for e in out[:stop]]
        self._held = self._held[stop:]
        return ready

    def _joined(self, key: str, where: list[int]) -> str:
        context = self._streams.get(key, _Stream()).context
        return context + "".join(self._held[i].text for i in where)  # type: ignore[union-attr]

    def _open_from(self, key: str, where: list[int]) -> int:
        """The index of the first event that must wait for more of this text."""
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
        stream = self._streams.get(key, _Stream())
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
        all_released = all(index < stop for index in where)
        start = self._finder.unfinished(released, _LEAST) if all_released and last else len(released)
        self._streams[key] = _Stream(
            context=released[min(start, max(0, len(released) - CONTEXT)) :],
            within=within if all_released else stream.within,
            open=start < len(released),
        )

    def _spans(self, stream: _Stream, parts: list[str], *, last: bool) -> tuple[list[Span], bool]:
        """The secrets within each piece, and those that are split across several; whether the last ends in a key."""
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
            if span.open_ended and was_whole and len(rest) < _SHORT_WORD and not any(c.isdigit() for c in rest):
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
    """Masks a piece that starts at `at` in the whole text. The mask goes in the piece where its secret starts."""
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
