"""What waits in Codex's human transcript until it is clear what it is."""

from __future__ import annotations

#: In characters. No thoughts and words together are as long, so that of more than this the oldest is certainly output.
MOST_HELD = 2 << 20
#: More are never found, nor as few.
_UNKNOWN = -1 << 60


class Held:
    """Lines, as pieces of one or many of them. Whoever prints without end does not fill the memory.

    Where very much is cut depends on the lines alone, not on how many of them came at once.
    """

    __slots__ = ("_older", "_pieces", "_size", "harmless")

    def __init__(self) -> None:
        self._older: list[str] = []
        self._size = 0
        self._pieces: list[str] = []
        #: how many of the characters that make escape sequences are known to be in lines which they do not make special
        self.harmless = 0

    def __bool__(self) -> bool:
        return bool(self._pieces or self._older)

    def add(self, line: str) -> str | None:
        """One more line; what waits no longer because of it."""
        self._pieces.append(line)
        self._size += len(line) + 1
        return self._next() if self._size >= MOST_HELD else None

    def fits(self, size: int) -> bool:
        """Whether lines of this size, newlines included, can be added and none has to go."""
        return self._size + size < MOST_HELD

    def add_all(self, text: str, start: int, end: int) -> list[str]:
        """The lines between two newlines of a text; what waits no longer because of them."""
        gone: list[str] = []
        while not self.fits(end - start):
            # The first line that is one too much.
            until = text.find("\n", max(start + 1, start + MOST_HELD - self._size))
            self._pieces.append(text[start + 1 : until])
            older = self._next()
            if older is not None:
                gone.append(older)
            start = until
        if start < end:
            self._pieces.append(text[start + 1 : end])
            self._size += end - start
        return gone

    def _next(self) -> str | None:
        older = "\n".join(self._older) if self._older else None
        self.harmless = _UNKNOWN
        self._older, self._pieces, self._size = self._pieces, [], 0
        return older

    def short(self, most: int) -> str | None:
        """All that waits, with a newline before each line, unless it is long or escape sequences matter in it."""
        if self._older or self._size > most:
            return None
        text = "\n".join(["", *self._pieces])
        return text if text.count("\x1b") + text.count("\r") == self.harmless else None

    def take(self) -> list[str]:
        """All that waits, line by line; then nothing does."""
        pieces = self._older + self._pieces
        self._older, self._pieces, self._size, self.harmless = [], [], 0, 0
        return "\n".join(pieces).split("\n") if pieces else []

    def take_with(self, text: str, start: int, end: int) -> str:
        """All that waits and then these lines, with a newline before each and one after the last."""
        pieces = ["", *self._older, *self._pieces]
        if start < end:
            pieces.append(text[start + 1 : end])
        pieces.append("")
        self._older, self._pieces, self._size, self.harmless = [], [], 0, 0
        return "\n".join(pieces)
