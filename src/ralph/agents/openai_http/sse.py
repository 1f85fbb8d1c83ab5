"""Splits an answer into JSON values. It is a stream of server-sent events or one JSON document."""

from __future__ import annotations

from typing import Any, TypeAlias

from ralph.transcripts.events import decode_json
from ralph.transcripts.framing import LineFramer

_DATA = "data:"
_FIELDS = (_DATA, "event:", "id:", "retry:", ":")

#: A JSON object, or a line that does not belong to the protocol.
Item: TypeAlias = dict[str, Any] | str


class AnswerReader:
    """Takes the body in chunks.

    The first character decides between stream and document: servers that cannot stream ignore the request for it, and
    some send the wrong content type.
    """

    def __init__(self) -> None:
        self._framer = LineFramer()
        self._document: list[bytes] | None = None
        self._begun = False
        self._held: list[str] = []
        #: `[DONE]` has come. Everything after it is ignored.
        self.done = False

    def feed(self, chunk: bytes) -> list[Item]:
        if not self._begun:
            chunk = chunk.removeprefix(b"\xef\xbb\xbf").lstrip()
            self._begun = bool(chunk)
            self._document = [] if chunk[:1] in (b"{", b"[") else None
        if self._document is not None:
            self._document.append(chunk)
            return []
        return [item for line in self._framer.feed(chunk) for item in self._line(line)]

    def flush(self) -> list[Item]:
        """Return what is left at the end. Some servers send no newline after the last line."""
        if self._document is not None:
            text = b"".join(self._document).decode("utf-8", "replace")
            self._document = None
            return _value(text) or [text]
        items = [item for line in self._framer.flush() for item in self._line(line)]
        return items + self._incomplete()

    def _line(self, line: str) -> list[Item]:
        if self.done or not line:
            return self._incomplete()
        if not line.startswith(_DATA):
            return [] if line.startswith(_FIELDS) else [line]
        data = line.removeprefix(_DATA).removeprefix(" ")
        if data.strip() == "[DONE]":
            self.done = True
            return self._incomplete()
        # Do not wait for the empty line that ends an event: not every server sends one.
        self._held.append(data)
        items = _value("\n".join(self._held))
        if items:
            self._held.clear()
        elif len(self._held) > 1 and (items := _value(data)):
            self._held.pop()
            items = self._incomplete() + items
        return items

    def _incomplete(self) -> list[Item]:
        """Return data that was still incomplete when its event ended."""
        lines, self._held = self._held, []
        return ["\n".join(lines)] if any(line.strip() for line in lines) else []


def _value(text: str) -> list[Item]:
    """Return the value, or nothing if the text is not complete JSON."""
    try:
        value = decode_json(text)
    except (ValueError, RecursionError):
        return []
    match value:
        case (dict() as found) | [dict() as found, *_]:  # Google's compatible endpoint puts errors into a list
            return [found]
        case _:
            return [text]
