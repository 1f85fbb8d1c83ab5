"""Framing: the same lines for any chunks of bytes, and no line is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fuzz.checks import choices, cut, require
from ralph.transcripts.framing import LineFramer

if TYPE_CHECKING:
    from collections.abc import Iterable


def lines_of(data: bytes) -> list[str]:
    """The reference: lines end at a newline, a CR before it belongs to the line end, invalid UTF-8 becomes U+FFFD."""
    parts = data.split(b"\n")
    if not parts[-1]:
        parts.pop()  # nothing follows the last newline
    return [part.removesuffix(b"\r").decode("utf-8", "replace") for part in parts]


def framed(chunks: Iterable[bytes], framer: LineFramer | None = None) -> list[str]:
    framer = framer or LineFramer()
    return [line for chunk in chunks for line in framer.feed(chunk)] + framer.flush()


def check(data: bytes) -> None:
    rng = choices(data)
    expected = lines_of(data)
    require(framed([data]) == expected, "the lines in one chunk", expected, framed([data]))
    for _ in range(3):
        chunks = cut(data, rng)
        require(framed(chunks) == expected, "the same lines for any chunks", expected, chunks)
    _pieces(data, cut(data, rng), longest=rng.randrange(4, 40))


def _pieces(data: bytes, chunks: list[bytes], longest: int) -> None:
    """A line that is too long comes in pieces: complete, in order, with whole characters, and little is held."""
    framer = LineFramer(longest)
    given: list[str] = []
    for chunk in chunks:
        given += framer.feed(chunk)
        held = len(framer._held)
        require(held <= longest + len(chunk) + 4, "no more than the line limit is held", held, longest)
    given += framer.flush()
    whole = "".join(lines_of(data))
    require("".join(given) == whole, "the pieces make up the whole line", given, whole, chunks, longest)
