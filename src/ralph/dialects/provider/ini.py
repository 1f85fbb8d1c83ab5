"""Reads INI files such as `.ralphex/config`. Comments (`#`, `;`) need a line of their own.

Like the convention's own tool, it reads no keys below a section header.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ralph.system import files

if TYPE_CHECKING:
    from pathlib import Path

_QUOTES = ("'''", '"""', '"', "'", "`")
#: A value in one of these may have several lines.
_LONG_QUOTES = ('"""', "`")
#: The name of the part before any other section.
_DEFAULT_SECTION = "DEFAULT"


class Entry(msgspec.Struct, frozen=True):
    value: str
    #: the file's name as the user sees it
    shown: str
    line: int

    @property
    def origin(self) -> str:
        return f"{self.shown}:{self.line}"


class IniFile(msgspec.Struct):
    entries: dict[str, Entry]
    #: the line number and the message of each
    problems: list[tuple[int, str]]
    remarks: list[tuple[int, str]]


def read_ini(path: Path, shown: str) -> IniFile:
    """Reads all keys; if one appears twice, the last line counts. Mistakes end up in `problems`."""
    file = IniFile({}, [], [])
    try:
        text = files.read(path).decode("utf-8-sig", "replace")
    except OSError as error:
        file.problems.append((0, f"{shown} cannot be read: {error.strerror}"))
        return file
    _Reader(text.splitlines(), shown, file).read()
    return file


class _Reader:
    def __init__(self, lines: list[str], shown: str, file: IniFile) -> None:
        self._lines = lines
        self._at = 0
        self._shown = shown
        self._file = file
        #: the line of the first section, and the keys in each, which are skipped
        self._first = 0
        self._sections: dict[str, list[str]] = {}
        self._section: str | None = None

    def read(self) -> None:
        while self._at < len(self._lines):
            number, bare = self._at + 1, self._lines[self._at].strip()
            self._at += 1
            if bare.startswith("[") and bare.endswith("]"):
                name = bare[1:-1].strip()
                self._section = None if name == _DEFAULT_SECTION else name
                self._first = self._first or number
            elif bare and bare[0] not in "#;":
                self._entry(number, bare)
        if self._sections:
            keys = "; ".join(f"[{name}] {', '.join(dict.fromkeys(keys))}" for name, keys in self._sections.items())
            text = f"keys in sections are ignored, as in ralphex: {keys}. To use a key, move it above the first section"
            self._file.remarks.append((self._first, f"{self._shown}:{self._first}: {text}"))

    def _entry(self, number: int, bare: str) -> None:
        end = min((at for at in (bare.find("="), bare.find(":")) if at > 0), default=-1)
        key, value = bare[:end].strip(), self._value(bare[end + 1 :].strip())
        if self._section is not None:
            if end > 0:
                self._sections.setdefault(self._section, []).append(key)
        elif end < 0:
            self._file.problems.append((number, f"{self._shown}:{number}: expected KEY = VALUE, not '{bare[:60]}'"))
        else:
            self._file.entries[key] = Entry(value, self._shown, number)

    def _value(self, value: str) -> str:
        """The value that begins so, with the lines that continue it: after a backslash, or up to the closing quotes."""
        quote = next((q for q in _LONG_QUOTES if value.startswith(q) and q not in value[len(q) :]), None)
        while quote is not None and self._at < len(self._lines):
            value += "\n" + self._lines[self._at]
            self._at += 1
            if quote in value[len(quote) :]:
                break
        while value.endswith("\\") and self._at < len(self._lines):
            value = value[:-1] + self._lines[self._at].strip()
            self._at += 1
        return _unquoted(value.strip())


def _unquoted(value: str) -> str:
    """Removes quotes around the whole value, but not inside it."""
    for quote in _QUOTES:
        inner = value[len(quote) : -len(quote)]
        if len(value) >= 2 * len(quote) and value.startswith(quote) and value.endswith(quote) and quote not in inner:
            return inner
    return value
