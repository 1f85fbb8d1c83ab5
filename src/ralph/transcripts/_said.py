"""Words that come twice: in fragments and then whole, in messages and then in a result. They are shown once."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ralph.transcripts._deltas import DeltaLines
from ralph.transcripts.events import Tag, Text

if TYPE_CHECKING:
    from ralph.transcripts.events import TranscriptEvent

#: A copy is recognised by this many of the latest characters, so that memory does not grow with a run.
_KEPT = 1 << 20


class Said:
    """The agent's latest words, to recognise a copy of them."""

    def __init__(self) -> None:
        self._texts: deque[str] = deque()
        self._size = 0
        self._dropped = False

    def add(self, text: str) -> None:
        self._texts.append(text)
        self._size += len(text)
        while self._size > _KEPT and len(self._texts) > 1:
            self._size -= len(self._texts.popleft())
            self._dropped = True

    def repeats(self, text: str) -> bool:
        """Whether these are the last words said, or all of them joined. Blanks do not count: CLIs trim and join."""
        new = _squash(text)
        if not new:
            return True
        latest: list[str] = []
        size = 0
        for known in reversed(self._texts):
            latest.append(_squash(known))
            size += len(latest[-1])
            if size >= len(new):
                break
        old = "".join(reversed(latest))
        return bool(old) and (old.endswith(new) or (self._dropped and new.endswith(old)))


class Streamed:
    """One kind of words (or thoughts) that may come in fragments, and whole again afterwards."""

    def __init__(self, tag: Tag) -> None:
        self._tag = tag
        self._lines = DeltaLines(tag)
        self._parts: list[str] = []
        self._whole: list[str] = []  # blocks that are complete, and of which no full copy has come yet
        self.said = Said()

    @property
    def coming(self) -> bool:
        """Whether a block is coming in fragments now."""
        return bool(self._parts)

    def fragment(self, text: str) -> list[TranscriptEvent]:
        if not text:
            return []  # a keep-alive
        self._parts.append(text)
        return self._lines.feed(text)

    def stop(self) -> list[TranscriptEvent]:
        """The block that was coming in fragments is over."""
        if not self._parts:
            return []
        text = "".join(self._parts)
        self._parts = []
        self._whole.append(text)
        self.said.add(text)
        return self._lines.flush()

    def restart(self) -> list[TranscriptEvent]:
        """A new message begins: full copies of the one before will not come any more."""
        events = self.stop()
        self._whole = []
        return events

    def full(self, text: str) -> list[TranscriptEvent]:
        """A whole block: what of it has not been shown yet."""
        if self._parts:
            shown = "".join(self._parts)
            if text.startswith(shown):
                events = self._lines.feed(text[len(shown) :]) + self._lines.flush()
                self._parts = []
                self.said.add(text)
                return events
            events = self.stop()
        elif self._whole:
            events = []
        else:
            self.said.add(text)
            return [Text(self._tag, text)]
        bare = text.strip()
        for index, known in enumerate(self._whole):
            if known.strip().endswith(bare):
                del self._whole[index]
                return events
        self.said.add(text)
        return [*events, Text(self._tag, text)]


def _squash(text: str) -> str:
    return "".join(text.split())
