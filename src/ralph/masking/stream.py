"""Masks bytes before they are written to a raw file (`--redact-raw`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ralph.masking.finder import Finder, Span, mark

if TYPE_CHECKING:
    from ralph.masking.masker import Masker


#: With patterns of the user's own, at most this much of a line is held back.
_LONGEST_LINE = 64 << 10


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


class ByteMasker:
    """Masks one stream. Bytes that may be the start of a secret wait for the next ones."""

    def __init__(self, masker: Masker) -> None:
        self._finder: Finder[bytes] = Finder(masker.secrets, masker.patterns, _encoded)
        self._on = masker.on
        #: the start of a match of the user's own pattern cannot be recognised, so whole lines are needed
        self._by_line = bool(masker.patterns)
        self._held = b""

    def feed(self, chunk: bytes) -> bytes:
        """Takes the next bytes; returns the masked bytes that can be written now."""
        if not self._on:
            return chunk
        data = self._held + chunk
        spans = self._finder.spans(data)
        cut = min(self._finder.unfinished(data), self._finder.unfinished_block(data))
        if self._by_line:
            cut = min(cut, max(data.rfind(b"\n") + 1, len(data) - _LONGEST_LINE))
        for span in spans:
            if span.start < cut < span.end or (span.open_ended and span.end == len(data)):
                cut = min(cut, span.start)
        self._held = data[cut:]
        return _applied(data, spans, cut)

    def flush(self) -> bytes:
        """The rest, masked. Call it when the stream has ended."""
        data, self._held = self._held, b""
        if not data:
            return b""
        spans = self._finder.spans(data)
        block = self._finder.unfinished_block(data)
        if block < len(data):
            return _applied(data, spans, block) + mark("key").encode()
        most = self._finder.most_of_one(data)
        if most is not None:
            return _applied(data, spans, most.start) + mark(most.label).encode()
        return _applied(data, spans, len(data))


def _applied(data: bytes, spans: list[Span], cut: int) -> bytes:
    parts, at = [], 0
    for span in spans:
        if span.end > cut:
            break
        parts += [data[at : span.start], mark(span.label).encode()]
        at = span.end
    return b"".join([*parts, data[at:cut]])
