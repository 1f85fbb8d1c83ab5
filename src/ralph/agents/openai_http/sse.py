"""The bytes of an answer into JSON values: server-sent events, or one JSON document."""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeAlias

import msgspec

from ralph.transcripts.events import decode_json
from ralph.transcripts.framing import LineFramer

_DATA = "data:"
_FIELDS = (_DATA, "event:", "id:", "retry:", ":")


class End(Enum):
    """`[DONE]`."""

    DONE = "done"


class Garbage(msgspec.Struct, frozen=True):
    """A line that is nothing of the protocol."""

    line: str


Item: TypeAlias = dict[str, Any] | End | Garbage


class AnswerReader:
    """Feed it the body as it comes.

    Which of both it is, its first character tells: servers that cannot stream ignore that it was asked for, and some
    name the wrong type.
    """

    def __init__(self) -> None:
        self._framer = LineFramer()
        self._document: list[bytes] | None = None
        self._begun = False
        self._held: list[str] = []

    def feed(self, chunk: bytes) -> list[Item]:
        if not self._begun:
            chunk = chunk.removeprefix(b"\xef\xbb\xbf").lstrip()
            if not chunk:
                return []
            self._begun = True
            if chunk[:1] in b"{[":
                self._document = []
        if self._document is not None:
            self._document.append(chunk)
            return []
        return [item for line in self._framer.feed(chunk) for item in self._line(line)]

    def flush(self) -> list[Item]:
        """What is left at the end; some servers end their last line with nothing."""
        if self._document is not None:
            text = b"".join(self._document).decode("utf-8", "replace")
            self._document = None
            return _value(text) or [Garbage(text)]
        items = [item for line in self._framer.flush() for item in self._line(line)]
        return items + self._torn()

    def _line(self, line: str) -> list[Item]:
        if not line:
            return self._torn()
        if line.startswith(_DATA):
            self._held.append(line[len(_DATA) :].removeprefix(" "))
            # At once when it is whole, instead of at the empty line: not every server sends those.
            items = _value("\n".join(self._held))
            if items:
                self._held.clear()
            elif len(self._held) > 1 and (items := _value(self._held[-1])):
                self._held.pop()
                items = self._torn() + items
            return items
        return [] if line.startswith(_FIELDS) else [Garbage(line)]

    def _torn(self) -> list[Item]:
        """Data that did not become whole before its event ended."""
        lines, self._held = self._held, []
        return [Garbage("\n".join(lines))] if any(line.strip() for line in lines) else []


def _value(text: str) -> list[Item]:
    if text.strip() == "[DONE]":
        return [End.DONE]
    try:
        value = decode_json(text)
    except (ValueError, RecursionError):
        return []
    match value:
        case dict():
            return [value]
        case [dict() as first, *_]:  # Google's compatible endpoint puts its errors into a list
            return [first]
        case _:
            return [Garbage(text)]
