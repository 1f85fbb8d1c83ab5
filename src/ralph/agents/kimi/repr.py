"""Python reprs of records (`TextPart(type='text', text='…')`), printed over several lines and cut at 80 columns.

The cuts stand anywhere, also within a marker. Lines are joined without a blank; where one was dropped at a cut, it is
lost, and nothing in the output tells.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

_MAX_DEPTH = 40
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<single>b?'[^'\\]*(?:\\.[^'\\]*)*') | (?P<double>b?"[^"\\]*(?:\\.[^"\\]*)*")
    | (?P<number>-?\d[\w.+-]*) | (?P<name>[^\W\d][\w.]*) | (?P<enum><[^<>]*>) | (?P<mark>[()\[\]{},=:])
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_PLAIN = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}
_CONSTANTS = {"None": None, "True": True, "False": False}
_CLOSING = {"[": "]", "(": ")", "{": "}"}
_HUGE = 1 << 63


class Record(msgspec.Struct):
    name: str
    fields: dict[str, Any]


class _NotAReprError(ValueError):
    pass


def parse(text: str) -> Record | None:
    """The record that the text is, whole; None if it is none, or not yet."""
    reader = _Reader(text)
    try:
        value = reader.value(0)
        reader.skip_blanks()
    except _NotAReprError:
        return None
    return value if isinstance(value, Record) and reader.at == len(text) else None


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def skip_blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def next(self) -> tuple[str, str]:
        found = _TOKEN.match(self.text, self.at)
        if found is None or found.lastgroup is None:
            raise _NotAReprError
        self.at = found.end()
        return found.lastgroup, found.group(found.lastgroup)

    def peek(self) -> str:
        found = _TOKEN.match(self.text, self.at)
        return found.group(found.lastgroup) if found is not None and found.lastgroup is not None else ""

    def value(self, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise _NotAReprError
        kind, token = self.next()
        match kind:
            case "single" | "double":
                return _unescape(token[1:-1] if token[0] != "b" else token[2:-1])
            case "number":
                return _number(token)
            case "enum":
                return token
            case "name" if self.peek() == "(":
                self.next()
                return Record(token, self.fields(depth + 1))
            case "name":
                return _CONSTANTS.get(token, token)
            case _ if token in _CLOSING:
                return self.items(_CLOSING[token], depth + 1)
        raise _NotAReprError

    def fields(self, depth: int) -> dict[str, Any]:
        """What stands in a record's parentheses; values without a name are passed over."""
        fields: dict[str, Any] = {}
        while self.peek() != ")":
            before = self.at
            kind, token = self.next()
            if kind == "name" and self.peek() == "=":
                self.next()
                fields[token] = self.value(depth)
            else:
                self.at = before
                self.value(depth)
            self.separator(")")
        self.next()
        return fields

    def items(self, closing: str, depth: int) -> Any:
        """A list, or a dict as one."""
        values: list[Any] = []
        pairs: dict[str, Any] = {}
        while self.peek() != closing:
            value = self.value(depth)
            if self.peek() == ":":
                self.next()
                pairs[str(value)] = self.value(depth)
            else:
                values.append(value)
            self.separator(closing)
        self.next()
        return pairs or values

    def separator(self, closing: str) -> None:
        match self.peek():
            case ",":
                self.next()
            case token if token != closing:
                raise _NotAReprError


def _number(token: str) -> int | float | None:
    try:
        number = int(token) if token.lstrip("-").isdecimal() and len(token) < 20 else float(token)
    except ValueError:
        raise _NotAReprError from None
    return number if -_HUGE < number < _HUGE else None


def _unescape(text: str) -> str:
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(found: re.Match[str]) -> str:
    plain = found.group(4)
    if plain is not None:
        return _PLAIN.get(plain, plain)
    code = int(found.group(1) or found.group(2) or found.group(3), 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
