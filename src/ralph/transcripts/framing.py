"""Splits bytes into lines at `\\n` only. Other splitters also break at U+2028 and U+0085, which JSON strings hold."""

from __future__ import annotations

#: A longer line is returned in pieces, so that an agent that never ends a line cannot fill the memory.
MAX_LINE = 65 << 20


class LineFramer:
    """Takes chunks of any size and returns complete lines as text. Invalid UTF-8 becomes U+FFFD."""

    def __init__(self, max_line: int = MAX_LINE) -> None:
        self._max_line = max_line
        self._held = bytearray()

    def holds(self, beginning: bytes) -> bool:
        """Whether a line has begun with this and not ended yet."""
        return self._held.startswith(beginning)

    def feed(self, chunk: bytes) -> list[str]:
        end = chunk.rfind(b"\n")
        if end < 0:
            self._held += chunk
            return [self._piece()] if len(self._held) > self._max_line else []
        self._held += chunk[:end]
        # All lines can be decoded together: a newline is never part of a character, not even of a broken one.
        lines = self._held.decode("utf-8", "replace").split("\n")
        self._held = bytearray(chunk[end + 1 :])
        return [line.removesuffix("\r") for line in lines]

    def flush(self) -> list[str]:
        """Return the last line if it has no newline."""
        line, self._held = self._held, bytearray()
        return [line.removesuffix(b"\r").decode("utf-8", "replace")] if line else []

    def _piece(self) -> str:
        """Take as much of a long line as ends with a complete character. A final CR may belong to the line end."""
        data = self._held
        cut = len(data)
        for back in range(1, 4):
            if data[-back] & 0xC0 != 0x80:  # not a continuation byte: the last character begins here
                cut -= back if data[-back] >= 0xC0 or data[-back] == 0x0D else 0
                break
        self._held = data[cut:]
        return data[:cut].decode("utf-8", "replace")
