"""Text as a reader sees it: without control characters, and with `\\uXXXX` as the character that it stands for.

A secret may be interrupted by a colour, a NUL or an invisible character, and an encoder may escape any character of it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cache, lru_cache
from typing import TYPE_CHECKING, AnyStr, Generic, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

# Each pattern begins with a set of single characters, which `re` finds fastest; what may follow is decided after it.
# Everything also matches an incomplete form at the end: the rest may come with the next piece.
_BODY = r"[0-?]*[ -/]*(?:[@-~]|\Z)"
#: The title of a window, a link and the like, up to a BEL or an `ESC \`.
_STRING = r"\][^\x07\x1b\n]{0,4096}?(?:\x07|(?:\x1b|\\+u001[bB])(?:\\+|\Z)|\\+u0007|\Z)"
#: What may follow an ESC.
_TAIL = rf"(?:\[{_BODY}|{_STRING}|[ -/]*(?:[0-Z\\^-~]|\Z))?"
_HEX = "[0-9a-fA-F]"
#: What may follow a backslash: more of them, and an ESC, another control or any other character that JSON escapes.
_ESCAPED = rf"\\*(?:u001[bB]{_TAIL}|[bf]|u(?P<code>{_HEX}{{4}})|u{_HEX}{{0,3}}\Z|\Z)"
_CONTROLS = r"\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f"
_INVISIBLE = r"\xad\u200b-\u200f\u2060\ufeff"
_IN_TEXT = (
    rf"[{_CONTROLS}\x1b\\\x80-\x9f{_INVISIBLE}]"
    rf"(?:(?<=\\){_ESCAPED}|(?<=\x1b){_TAIL}|(?<=\x9b)(?:{_BODY})?|(?<=[{_CONTROLS}\x80-\x9a\x9c-\x9f{_INVISIBLE}]))"
)
_IN_BYTES = (
    rf"[{_CONTROLS}\x1b\\\xc2\xe2\xef]"
    rf"(?:(?<=\\){_ESCAPED}|(?<=\x1b){_TAIL}|(?<=[{_CONTROLS}])"
    rf"|(?<=\xc2)(?:\x9b(?:{_BODY})?|[\x80-\x9f\xad]|\Z)"
    r"|(?<=\xe2)(?:\x80(?:[\x8b-\x8f]|\Z)|\x81(?:\xa0|\Z)|\Z)|(?<=\xef)(?:\xbb(?:\xbf|\Z)|\Z))"
)
# The same for lines of encoded events, in two steps: removing what is always removed needs no call for each match.
_REMOVED = _IN_BYTES.replace(f"(?P<code>{_HEX}{{4}})", "00(?:[01][0-9a-fA-F]|7[fF])")
_CODE = re.compile(rb"\\+u([0-9a-fA-F]{4})")
#: What lines of encoded events have if there is something to remove. (The encoder writes most controls as `\u00…`.)
#: For each pattern, the byte that it begins with: looking for one byte costs almost nothing.
_HINTS = (
    (b"\\", re.compile(rb"\\(?:[bf]|u00[017])")),
    (b"\x7f", re.compile(rb"\x7f")),
    (b"\xc2", re.compile(rb"\xc2[\x80-\x9f\xad]")),
    (b"\xe2", re.compile(rb"\xe2(?:\x80[\x8b-\x8f]|\x81\xa0)")),
    (b"\xef", re.compile(rb"\xef\xbb\xbf")),
)
_LINE_ENDS = frozenset({0x09, 0x0A, 0x0D})


class _Piece(NamedTuple):
    """A part of a view: where it begins there, and from where to where it stands in the text."""

    at: int
    start: int
    end: int
    #: it is one character of the view, written in several
    decoded: bool


class View(msgspec.Struct, Generic[AnyStr], frozen=True):
    """A text as a reader sees it. Positions in it can be translated to positions in the text itself."""

    data: AnyStr
    pieces: list[_Piece]

    def start(self, position: int) -> int:
        """Where the character at this position begins in the text."""
        piece = self._piece(position)
        return piece.start if piece.decoded else piece.start + position - piece.at

    def end(self, position: int) -> int:
        """Where the character before this position ends in the text."""
        piece = self._piece(position - 1)
        return piece.end if piece.decoded else piece.start + position - piece.at

    def _piece(self, position: int) -> _Piece:
        return self.pieces[bisect_right(self.pieces, position, key=lambda piece: piece.at) - 1]


# Compiled when they are first needed, to keep the start fast.


@cache
def _pattern(source: str) -> re.Pattern[str]:
    return re.compile(source)


@cache
def _bytes_pattern(source: str) -> re.Pattern[bytes]:
    return re.compile(source.encode("latin-1"))


def view_of_text(text: str) -> View[str] | None:
    """The view of a text; None if it is the text itself."""
    return _view(text, _pattern(_IN_TEXT), str)


def view_of_bytes(data: bytes) -> View[bytes] | None:
    return _view(data, _bytes_pattern(_IN_BYTES), _utf8)


def _view(data: AnyStr, pattern: re.Pattern[AnyStr], to: Callable[[str], AnyStr]) -> View[AnyStr] | None:
    parts: list[AnyStr] = []
    pieces: list[_Piece] = []
    size = done = 0

    def add(part: AnyStr, start: int, end: int, *, decoded: bool) -> None:
        nonlocal size
        if part:
            parts.append(part)
            pieces.append(_Piece(size, start, end, decoded))
            size += len(part)

    for found in pattern.finditer(data):
        add(data[done : found.start()], done, found.start(), decoded=False)
        add(_shown(found, to), found.start(), found.end(), decoded=True)
        done = found.end()
    if not done:
        return None
    add(data[done:], done, len(data), decoded=False)
    return View(data[:0].join(parts), pieces) if pieces else None


def may_differ(lines: bytes) -> bool:
    """Whether encoded events have another view than themselves."""
    return _has_controls(lines) or b"\\u" in lines


def _has_controls(lines: bytes) -> bool:
    return any(first in lines and pattern.search(lines) is not None for first, pattern in _HINTS)


def bare(lines: bytes) -> bytes:
    """Encoded events as a reader sees them."""
    if _has_controls(lines):
        lines = _bytes_pattern(_REMOVED).sub(b"", lines)
    return _CODE.sub(_decoded, lines) if b"\\u" in lines else lines


def _utf8(char: str) -> bytes:
    return char.encode("utf-8", "surrogatepass")


def _decoded(found: re.Match[bytes]) -> bytes:
    return _character(found[1])


@lru_cache
def _character(code: bytes) -> bytes:
    return _utf8(chr(int(code, 16)))


def _shown(found: re.Match[AnyStr], to: Callable[[str], AnyStr]) -> AnyStr:
    """What a reader sees in place of a match."""
    code = found["code"]
    number = int(code, 16) if code else 0
    return to(chr(number) if number >= 0x20 or number in _LINE_ENDS else "")
