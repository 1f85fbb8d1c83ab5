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
#: So many fragments of a line are kept apart. They are counted and joined only then: most lines have fewer.
MOST_FRAGMENTS = 1024


class DeltaLines:
    """Collects the fragments of one message (or thought) at a time."""

    __slots__ = ("_given", "_held", "_joined", "_joined_size", "_tag")

    def __init__(self, tag: Tag) -> None:
        self._tag = tag
        self._held: list[str] = []  # of the line that is coming
        self._joined: list[str] = []  # what came of a long line before
        self._joined_size = 0
        self._given = 0  # characters of the current message that were handed on

    @property
    def length(self) -> int:
        """How many characters of the current message have come; a full copy that follows can be skipped by it."""
        return self._given + self._joined_size + sum(map(len, self._held))

    @property
    def begun(self) -> bool:
        """Whether a message is coming."""
        return self._given > 0 or bool(self._held) or bool(self._joined)

    def feed(self, fragment: str) -> list[TranscriptEvent]:
        events: list[TranscriptEvent] = []
        self.add(fragment, events)
        return events

    def add(self, fragment: str, events: list[TranscriptEvent]) -> None:
        """The same, with its events put to others: most fragments have none."""
        if "\n" in fragment:
            self._held.append(fragment)
            text, _, rest = self._taken().rpartition("\n")
            self._given += len(text) + 1
            if rest:
                self._held.append(rest)
            events.append(Text(self._tag, text))
        elif fragment:
            held = self._held
            held.append(fragment)
            if len(held) >= MOST_FRAGMENTS:
                self._join(events)

    def flush(self) -> list[TranscriptEvent]:
        """The message is over: its last line, if it had no newline."""
        self._given = 0
        return [Text(self._tag, self._taken())] if self._held or self._joined else []

    def _taken(self) -> str:
        text = "".join(self._held)
        self._held = []
        if self._joined:
            text = "".join(self._joined) + text
            self._joined, self._joined_size = [], 0
        return text

    def _join(self, events: list[TranscriptEvent]) -> None:
        text = "".join(self._held)
        self._held = []
        self._joined.append(text)
        self._joined_size += len(text)
        if self._joined_size > MAX_HELD:
            self._given += self._joined_size
            events.append(Text(self._tag, self._taken()))
