"""Joins streamed fragments into lines, so that a line is shown as soon as it is complete and a marker is never cut."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from ralph.transcripts.events import Tag, Text

if TYPE_CHECKING:
    from ralph.transcripts.events import TranscriptEvent

#: A longer line is emitted in pieces, so that an agent that never ends a line cannot fill the memory.
MAX_HELD = 64 << 20
#: The memory that Python needs for a string besides its characters.
FRAGMENT = 56


class DeltaLines:
    """Collects the fragments of one message (or thought) at a time."""

    def __init__(self, tag: Tag) -> None:
        self._tag = tag
        self._line = StringIO()  # many small strings in a list would need several times the memory
        self._emitted = 0

    @property
    def length(self) -> int:
        """How many characters of the current message have come. Use it to skip the full copy that follows."""
        return self._emitted + self._line.tell()

    @property
    def begun(self) -> bool:
        """Whether a message is coming."""
        return self.length > 0

    def feed(self, fragment: str) -> list[TranscriptEvent]:
        """Return the lines that this fragment completes, as one event."""
        self._line.write(fragment)
        if "\n" in fragment:
            text, _, rest = self._take().rpartition("\n")
            self._emitted += len(text) + 1
            self._line.write(rest)
        elif self._line.tell() > MAX_HELD:
            text = self._take()
            self._emitted += len(text)
        else:
            return []
        return [Text(self._tag, text)]

    def flush(self) -> list[TranscriptEvent]:
        """End the message. Return its last line if that had no newline."""
        self._emitted = 0
        return [Text(self._tag, self._take())] if self._line.tell() else []

    def _take(self) -> str:
        text = self._line.getvalue()
        self._line = StringIO()
        return text
