"""Bytes into lines, on `\\n` alone: JSON strings carry raw U+2028 and U+0085, which other splitters break at."""

from __future__ import annotations

#: A line longer than this is handed on in pieces, so that an agent that never ends a line cannot fill the memory.
MAX_LINE = 65 << 20


class LineFramer:
    """Feeds on chunks of any size; gives whole lines as text, invalid UTF-8 as U+FFFD (the raw file has the bytes)."""

    def __init__(self, max_line: int = MAX_LINE) -> None:
        self._max_line = max_line
        self._held: list[bytes] = []
        self._held_size = 0

    def feed(self, chunk: bytes) -> list[str]:
        end = chunk.rfind(b"\n")
        if end < 0:
            self._hold(chunk)
            if self._held_size > self._max_line:
                return [self._piece()]
            return []
        whole = chunk[:end]
        if self._held:
            self._held.append(whole)
            whole = b"".join(self._held)
            self._held.clear()
            self._held_size = 0
        self._hold(chunk[end + 1 :])
        # Decoded as one: a newline is never part of a character, not even of a broken one.
        text = whole.decode("utf-8", "replace")
        lines = text.split("\n")
        return [line.removesuffix("\r") for line in lines] if "\r" in text else lines

    def flush(self) -> list[str]:
        """The last line, if it lacked its newline."""
        return [self._take()] if self._held else []

    def _hold(self, rest: bytes) -> None:
        if rest:
            self._held.append(rest)
            self._held_size += len(rest)

    def _piece(self) -> str:
        """What there is of a line that is too long, up to a whole character; a CR may belong to the line end."""
        data = b"".join(self._held)
        cut = len(data)
        for back in range(1, 4):
            if data[-back] & 0xC0 != 0x80:  # not a continuation byte: here the last character begins
                cut -= back if data[-back] >= 0xC0 or data[-back] == 0x0D else 0
                break
        self._held.clear()
        self._held_size = 0
        self._hold(data[cut:])
        return data[:cut].decode("utf-8", "replace")

    def _take(self) -> str:
        line = _text(b"".join(self._held))
        self._held.clear()
        self._held_size = 0
        return line


def _text(line: bytes) -> str:
    if line.endswith(b"\r"):
        line = line[:-1]
    return line.decode("utf-8", "replace")
