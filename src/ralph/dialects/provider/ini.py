"""Reads INI files without sections, such as `.ralphex/config`. Comments (`#`, `;`) need a line of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ralph.system import files

if TYPE_CHECKING:
    from pathlib import Path

_QUOTES = ("'''", '"""', '"', "'", "`")


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


def read_ini(path: Path, shown: str) -> IniFile:
    """Reads all keys; if one appears twice, the last line counts. Mistakes end up in `problems`."""
    file = IniFile({}, [])
    try:
        text = files.read(path).decode("utf-8-sig", "replace")
    except OSError as error:
        file.problems.append((0, f"{shown} cannot be read: {error.strerror}"))
        return file
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if not bare or bare[0] in "#;":
            continue
        if bare.startswith("[") and bare.endswith("]"):
            file.problems.append((number, f"{shown}:{number}: this file cannot have sections: remove {bare}"))
            continue
        end = min((at for at in (bare.find("="), bare.find(":")) if at > 0), default=-1)
        if end < 0:
            file.problems.append((number, f"{shown}:{number}: expected KEY = VALUE, not '{bare[:60]}'"))
            continue
        file.entries[bare[:end].strip()] = Entry(_unquoted(bare[end + 1 :].strip()), shown, number)
    return file


def _unquoted(value: str) -> str:
    """Removes quotes around the whole value, but not inside it."""
    for quote in _QUOTES:
        inner = value[len(quote) : -len(quote)]
        if len(value) >= 2 * len(quote) and value.startswith(quote) and value.endswith(quote) and quote not in inner:
            return inner
    return value
