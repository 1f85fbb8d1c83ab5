"""Reads `.ralphrc` as data: `KEY=value` with shell quoting and `${VAR:-default}`. Nothing in it is ever executed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from ralph.dialects.driver.keys import LISTS

if TYPE_CHECKING:
    from collections.abc import Mapping

_ASSIGNMENT = re.compile(r"(?:export[ \t]+|readonly[ \t]+|declare[ \t]+(?:-\w+[ \t]+)*)?([A-Za-z_]\w*)(\+?)=")
_NAME = re.compile(r"[A-Za-z_]\w*")
#: The start and end of code that may not run, or not only once: assignments inside it are skipped.
_OPENS = re.compile(r"(?:if|for|while|until|case|select)\b|.*\{[ \t]*$")
_CLOSES = re.compile(r"(?:.*[;\s])?(?:fi|done|esac|\})[ \t]*;?$")
_ESCAPED_IN_QUOTES = '$`"\\'


class Assignment(msgspec.Struct, frozen=True):
    value: str
    line: int
    #: whether the agent gets it as well
    exported: bool = False


class RcFile(msgspec.Struct, frozen=True):
    """The contents of a file. A problem is a value that cannot be read; a remark is about a line that is skipped."""

    values: dict[str, Assignment] = {}
    problems: list[tuple[int, str]] = []
    remarks: list[tuple[int, str]] = []


class _UnreadableError(Exception):
    """A value that cannot be read without running a shell."""


def read(text: str, environ: Mapping[str, str]) -> RcFile:
    """Reads all assignments. A variable has the value that the file assigned before, or else the environment's."""
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
            self._skip_code(rest, line)
            return
        self._at += found.end()
        try:
            array = self._text.startswith("(", self._at)
            if array and found[1] not in LISTS:
                self._file.remarks.append((line, f"{found[1]} is an array; arrays are not supported, so it is ignored"))
                self._skip_array()
                return
            value = self._array() if array else self._word(end=" \t\n;")
        except _UnreadableError as error:
            self._file.problems.append((line, f"{found[1]}: {error}"))
            self._skip_line()
            return
        before = self._file.values.get(found[1])
        if found[2] and before is not None:
            value = before.value + value
        self._file.values[found[1]] = Assignment(value, line, exported=rest.startswith("export"))
        self._check_after_value(line)

    def _check_after_value(self, line: int) -> None:
        """Only a comment or another statement may follow a value."""
        rest = self._rest().lstrip(" \t")
        if rest.startswith(("#", ";")) or not rest or _ASSIGNMENT.match(rest):
            return
        self._file.remarks.append((line, f"'{rest[:40]}' after the value is not KEY=value; it is ignored"))
        self._skip_line()

    def _skip_code(self, rest: str, line: int) -> None:
        inside = self._depth > 0
        rest = rest.rstrip(" \t")
        if _OPENS.match(rest) and not _CLOSES.match(rest):
            self._depth += 1
        elif self._depth and _CLOSES.match(rest):
            self._depth -= 1
        if not inside:
            self._file.remarks.append((line, f"'{rest.strip()[:40]}' is not KEY=value; it is not executed"))
        self._skip_line()

    def _array(self) -> str:
        """The elements of an array, one per line."""
        parts: list[str] = []
        self._at += 1
        while not self._text.startswith(")", self._at):
            if self._at >= len(self._text):
                raise _UnreadableError("the array is not closed by )")
            if self._text[self._at] in " \t\n":
                self._at += 1
            elif self._text[self._at] == "#":
                self._skip_line()
            else:
                parts.append(self._word(end=" \t\n)"))
        self._at += 1
        return "\n".join(parts)

    def _skip_array(self) -> None:
        end = self._text.find(")", self._at)
        self._at = len(self._text) if end < 0 else end + 1

    # -- a value

    def _word(self, end: str) -> str:
        """Reads up to one of the characters in `end`, and does not consume that one."""
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
            raise _UnreadableError("the quote ' is not closed")
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
        raise _UnreadableError('the quote " is not closed')

    def _expansion(self, char: str) -> str:
        """Reads what follows `$` or a backtick."""
        if char == "`" or self._text.startswith("(", self._at):
            shown = "`…`" if char == "`" else "$(…)"
            raise _UnreadableError(f"{shown} is not supported, because this file is never executed: write the value")
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
            raise _UnreadableError("${ must be followed by a name")
        self._at = name.end()
        operator = re.compile(r":?[-=]|(?=\})").match(self._text, self._at)
        if operator is None:
            raise _UnreadableError("only ${NAME} and ${NAME:-default} are supported")
        self._at = operator.end()
        default = self._word(end="}")
        if not self._text.startswith("}", self._at):
            raise _UnreadableError("${ is not closed by }")
        self._at += 1
        value = self._value_of(name[0])
        return value if value or not operator[0] else default

    def _value_of(self, name: str) -> str:
        assignment = self._file.values.get(name)
        return assignment.value if assignment is not None else self._environ.get(name, "")
