"""Reads the repr of a Python record: `TextPart(type='text', text='…')`.

`ast` would be shorter, but it is not made for text from strangers: a few hundred kilobytes can stall or crash it.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

_MAX_DEPTH = 40
_TOKEN = re.compile(
    r"""\s*(?:
    b?(?P<string>'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")
    | (?P<word>[\w.+-]+) | (?P<enum><[^<>]*>) | (?P<mark>[()\[\]{},=:]) | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_PLAIN = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}
_CONSTANTS = {"None": None, "True": True, "False": False}
_CLOSING = {"(": ")", "[": "]", "{": "}"}


class Record(NamedTuple):
    name: str
    #: Numbers are floats; a record inside this one is a dict as well, without its name.
    fields: dict[str, Any]


def parse(text: str) -> Record | None:
    """The record that the text consists of; None if it is incomplete or something else."""
    try:
        reader = _Reader(text)
        name, kind = reader.text, reader.kind
        value = reader.value(0)
        reader.expect("")
    except ValueError:
        return None
    return Record(name, value if isinstance(value, dict) else {}) if kind == "word" else None


class _Reader:
    """A recursive parser that looks one token ahead."""

    def __init__(self, text: str) -> None:
        self._source = text
        self._at = 0
        self.advance()

    def advance(self) -> None:
        found = _TOKEN.match(self._source, self._at)
        if found is None:
            raise ValueError("not a repr")
        self._at = found.end()
        self.kind = found.lastgroup
        self.text = found.group(found.lastgroup or 0)

    def expect(self, text: str) -> None:
        if self.text != text:
            raise ValueError("not a repr")

    def value(self, depth: int) -> Any:
        kind, text = self.kind, self.text
        self.advance()
        match kind:
            case "string":
                return _ESCAPE.sub(_character, text[1:-1])
            case "enum":
                return text
            case "word" if self.text == "(":
                self.advance()
                return self.items(")", depth + 1)
            case "word":
                return _word(text)
            case "mark" if text in _CLOSING:
                return self.items(_CLOSING[text], depth + 1)
        raise ValueError("not a repr")

    def items(self, closing: str, depth: int) -> dict[str, Any] | list[Any]:
        """What is inside brackets: fields or entries if any has a key, otherwise a list."""
        if depth > _MAX_DEPTH:
            raise ValueError("not a repr")
        fields: dict[str, Any] = {}
        values: list[Any] = []
        while self.text != closing:
            value = self.value(depth)
            if self.text in ("=", ":"):
                self.advance()
                fields[str(value)] = self.value(depth)
            else:
                values.append(value)
            if self.text == ",":
                self.advance()
            else:
                self.expect(closing)
        self.advance()
        return fields or values


def _word(word: str) -> Any:
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    try:
        return float(word)
    except ValueError:
        return word


def _character(found: re.Match[str]) -> str:
    escape = found.group(1)
    if len(escape) == 1:
        return _PLAIN.get(escape, escape)
    code = int(escape[1:], 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
