"""`.ralphrc` as data: `KEY=value` with the shell's quotes and `${VAR:-default}`. Nothing in it is ever run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

_ASSIGNMENT = re.compile(r"(?:export[ \t]+|readonly[ \t]+|declare[ \t]+(?:-\w+[ \t]+)*)?([A-Za-z_]\w*)(\+?)=")
_NAME = re.compile(r"[A-Za-z_]\w*")
#: What opens and closes code that runs only sometimes: assignments within it are not facts.
_OPENS = re.compile(r"(?:if|for|while|until|case|select)\b|.*\{[ \t]*$")
_CLOSES = re.compile(r"(?:.*[;\s])?(?:fi|done|esac|\})[ \t]*;?[ \t]*$")
_ESCAPED_IN_QUOTES = '$`"\\'


class Assignment(msgspec.Struct, frozen=True):
    value: str
    line: int
    #: the agent is to see it as well
    exported: bool = False


class RcFile(msgspec.Struct, frozen=True):
    """What a file says. A problem is what must not be guessed; a remark what is only left out."""

    values: dict[str, Assignment] = {}
    problems: list[tuple[int, str]] = []
    remarks: list[tuple[int, str]] = []


class _RefusedError(Exception):
    """A value that only a shell could know."""


def read(text: str, environ: Mapping[str, str]) -> RcFile:
    """All assignments of a file. What it said earlier stands for a variable before the environment does."""
    return _Reader(text.replace("\r\n", "\n"), environ).read()


class _Reader:
    def __init__(self, text: str, environ: Mapping[str, str]) -> None:
        self._text = text
        self._at = 0
        self._environ = environ
        self._file = RcFile({}, [], [])
        self._depth = 0

    def read(self) -> RcFile:
        while self._at < len(self._text):
            self._statement()
        return self._file

    @property
    def _line(self) -> int:
        return self._text.count("\n", 0, self._at) + 1

    def _rest(self) -> str:
        end = self._text.find("\n", self._at)
        return self._text[self._at : len(self._text) if end < 0 else end]

    def _skip_line(self) -> None:
        end = self._text.find("\n", self._at)
        self._at = len(self._text) if end < 0 else end + 1

    def _statement(self) -> None:
        self._at += len(self._rest()) - len(self._rest().lstrip(" \t;"))
        rest, line = self._rest(), self._line
        if not rest.strip() or rest.startswith("#"):
            self._skip_line()
            return
        found = _ASSIGNMENT.match(rest)
        if found is None or self._depth:
            self._code(rest, line)
            return
        self._at += found.end()
        try:
            if self._text.startswith("(", self._at):
                self._file.remarks.append((line, f"{found[1]} is an array, which is not read; it is ignored"))
                self._skip_array()
                return
            value = self._word(end=" \t\n;")
        except _RefusedError as refused:
            self._file.problems.append((line, f"{found[1]}: {refused}"))
            self._skip_line()
            return
        before = self._file.values.get(found[1])
        if found[2] and before is not None:
            value = before.value + value
        self._file.values[found[1]] = Assignment(value, line, exported=rest.startswith("export"))
        self._after(line)

    def _after(self, line: int) -> None:
        """What may stand behind a value: nothing, a comment, or another statement."""
        rest = self._rest().lstrip(" \t")
        if rest.startswith(("#", ";")) or not rest or _ASSIGNMENT.match(rest):
            return
        self._file.remarks.append((line, f"'{rest[:40]}' behind the value is not KEY=value; it is ignored"))
        self._skip_line()

    def _code(self, rest: str, line: int) -> None:
        inside = self._depth > 0
        if _OPENS.match(rest) and not _CLOSES.match(rest):
            self._depth += 1
        elif self._depth and _CLOSES.match(rest):
            self._depth -= 1
        if not inside:
            self._file.remarks.append((line, f"'{rest.strip()[:40]}' is not KEY=value; it is not run"))
        self._skip_line()

    def _skip_array(self) -> None:
        end = self._text.find(")", self._at)
        self._at = len(self._text) if end < 0 else end + 1

    # -- a value

    def _word(self, end: str) -> str:
        """Up to one of `end`, which stays."""
        parts: list[str] = []
        while self._at < len(self._text):
            char = self._text[self._at]
            if char in end:
                break
            if char == "#" and not parts and end != "}":
                break
            self._at += 1
            match char:
                case "'":
                    parts.append(self._until_quote())
                case '"':
                    parts.append(self._double_quoted())
                case "\\":
                    parts.append(self._escaped())
                case "$" | "`":
                    parts.append(self._expansion(char))
                case _:
                    parts.append(char)
        return "".join(parts)

    def _escaped(self) -> str:
        char = self._text[self._at : self._at + 1]
        self._at += 1
        return "" if char == "\n" else char

    def _until_quote(self) -> str:
        end = self._text.find("'", self._at)
        if end < 0:
            raise _RefusedError("the quote ' is not closed")
        value, self._at = self._text[self._at : end], end + 1
        return value

    def _double_quoted(self) -> str:
        parts: list[str] = []
        while self._at < len(self._text):
            char = self._text[self._at]
            self._at += 1
            match char:
                case '"':
                    return "".join(parts)
                case "\\" if self._text[self._at : self._at + 1] in (*_ESCAPED_IN_QUOTES, "\n"):
                    parts.append(self._escaped())
                case "$" | "`":
                    parts.append(self._expansion(char))
                case _:
                    parts.append(char)
        raise _RefusedError('the quote " is not closed')

    def _expansion(self, char: str) -> str:
        """Behind `$` or a backtick."""
        if char == "`" or self._text.startswith("(", self._at):
            shown = "`…`" if char == "`" else "$(…)"
            raise _RefusedError(f"{shown} would have to be run, and this file is only read: write the value itself")
        if self._text.startswith("{", self._at):
            self._at += 1
            return self._braces()
        name = _NAME.match(self._text, self._at)
        if name is None:
            return "$"
        self._at = name.end()
        return self._value_of(name[0])

    def _braces(self) -> str:
        """`${VAR}`, `${VAR:-default}`, `${VAR-default}` and the same with `=`."""
        name = _NAME.match(self._text, self._at)
        if name is None:
            raise _RefusedError("after ${ only a name is read")
        self._at = name.end()
        operator = re.compile(r":?[-=]|(?=\})").match(self._text, self._at)
        if operator is None:
            raise _RefusedError("of ${…} only ${NAME} and ${NAME:-default} are read")
        self._at = operator.end()
        default = self._word(end="}")
        if not self._text.startswith("}", self._at):
            raise _RefusedError("${ is not closed by }")
        self._at += 1
        known = self._value_of(name[0])
        return known if known or not operator[0] else default

    def _value_of(self, name: str) -> str:
        said = self._file.values.get(name)
        return said.value if said is not None else self._environ.get(name, "")
