"""Streamed fragments into lines: shown as soon as a line is whole, never cut within a marker, never doubled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ralph.transcripts.events import Tag, Text

if TYPE_CHECKING:
    from ralph.transcripts.events import TranscriptEvent

#: A line that is longer is handed on in pieces, so that an agent that never ends one cannot fill the memory.
MAX_HELD = 64 << 20
#: What a fragment takes in memory besides its characters: many of a character each are much more than they say.
FRAGMENT = 56


class DeltaLines:
    """Collects the fragments of one message (or thought) at a time."""

    def __init__(self, tag: Tag) -> None:
        self._tag = tag
        self._held: list[str] = []
        self._size = 0
        #: how many characters of the current message have come; a full copy that follows can be skipped by it
        self.length = 0

    def feed(self, fragment: str) -> list[TranscriptEvent]:
        self.length += len(fragment)
        end = fragment.rfind("\n")
        if end < 0:
            if not fragment:
                return []
            self._held.append(fragment)
            self._size += len(fragment) + FRAGMENT
            return self._rest() if self._size > MAX_HELD else []
        self._held.append(fragment[:end])
        whole = "".join(self._held)
        self._held = [fragment[end + 1 :]] if end + 1 < len(fragment) else []
        self._size = len(fragment) - end - 1
        return [Text(self._tag, whole)]

    def flush(self) -> list[TranscriptEvent]:
        """The message is over: its last line, if it had no newline."""
        self.length = 0
        return self._rest()

    def _rest(self) -> list[TranscriptEvent]:
        if not self._held:
            return []
        rest = "".join(self._held)
        self._held, self._size = [], 0
        return [Text(self._tag, rest)]
