"""Joins streamed fragments into lines, so that a line is shown as soon as it is complete and a marker is never cut."""

from __future__ import annotations

import zlib
from io import StringIO
from typing import TYPE_CHECKING, NamedTuple

from ralph.transcripts.events import Tag, Text

if TYPE_CHECKING:
    from ralph.transcripts.events import TranscriptEvent

#: A longer line is emitted in pieces, so that an agent that never ends a line cannot fill the memory.
MAX_HELD = 64 << 20
#: The memory that Python needs for a string besides its characters.
FRAGMENT = 56


class Shown(NamedTuple):
    """A text that came in fragments, as far as it is needed to recognise it in its full copy."""

    length: int = 0
    checksum: int = 0
    #: how many characters the text has without the spaces at its end, and their checksum
    bare: tuple[int, int] = (0, 0)

    def plus(self, fragment: str) -> Shown:
        kept = fragment.rstrip()
        bare = (self.length + len(kept), _checksum(kept, self.checksum)) if kept else self.bare
        return Shown(self.length + len(fragment), _checksum(fragment, self.checksum), bare)

    def rest(self, full: str) -> str | None:
        """The part of the full copy that has not come; None if the copy is of another text."""
        if _checksum(full[: self.length]) == self.checksum:
            return full[self.length :]
        trimmed = full.rstrip()  # some CLIs trim the copy
        return "" if (len(trimmed), _checksum(trimmed)) == self.bare else None


def _checksum(text: str, before: int = 0) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"), before)


class DeltaLines:
    """Collects the fragments of one message (or thought) at a time."""

    def __init__(self, tag: Tag) -> None:
        self._tag = tag
        self._line = StringIO()  # many small strings in a list would need several times the memory
        self._shown = Shown()

    @property
    def shown(self) -> Shown:
        """What has come of the current message."""
        return self._shown

    @property
    def begun(self) -> bool:
        """Whether a message is coming."""
        return self._shown.length > 0

    def feed(self, fragment: str) -> list[TranscriptEvent]:
        """Return the lines that this fragment completes, as one event."""
        self._line.write(fragment)
        self._shown = self._shown.plus(fragment)
        if "\n" in fragment:
            text, _, rest = self._take().rpartition("\n")
            self._line.write(rest)
        elif self._line.tell() > MAX_HELD:
            text = self._take()
        else:
            return []
        return [Text(self._tag, text)]

    def whole(self, text: str) -> list[TranscriptEvent]:
        """End the message with its full copy. Return what has not been shown: its rest, or all of it if it differs."""
        rest = self._shown.rest(text)
        events = self.flush() if rest is None else self.feed(rest) + self.flush()
        return [*events, Text(self._tag, text.removesuffix("\n"))] if rest is None else events

    def flush(self) -> list[TranscriptEvent]:
        """End the message. Return its last line if that had no newline."""
        self._shown = Shown()
        return [Text(self._tag, self._take())] if self._line.tell() else []

    def _take(self) -> str:
        text = self._line.getvalue()
        self._line = StringIO()
        return text
