"""Words that come twice: in fragments and then whole, in messages and then in a result. They are shown once."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ralph.transcripts import _deltas
from ralph.transcripts.events import Tag, Text

if TYPE_CHECKING:
    from ralph.transcripts.events import TranscriptEvent

#: A copy is recognised by this many of the latest characters, so that memory does not grow with a run.
_KEPT = 1 << 20
#: A message has few blocks; without its full copy they are forgotten, the oldest first.
_MOST_BLOCKS = 256


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
        if self._texts and self._texts[-1].strip() == text.strip():
            return True  # nearly always; the rest is slow on long texts
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
        self._held: list[str] = []  # of its last line, which is not whole yet
        #: of the block that is coming in fragments now
        self.parts: list[str] = []
        self._size = 0  # of those parts
        self._whole: list[str] = []  # blocks that are complete, and of which no full copy has come yet
        self._whole_size = 0  # at least theirs: it is counted anew before any of them is forgotten
        self.said = Said()
        self._remembered = tag is Tag.AI  # nobody asks whether a thought was said before

    def fragment(self, text: str) -> list[TranscriptEvent]:
        if not text:
            return []  # a keep-alive
        self.parts.append(text)
        self._size += len(text) + _deltas.FRAGMENT
        if self._size > _deltas.MAX_HELD:
            self._held.append(text)
            return self.stop()  # no block is as long: it is shown, and not waited for any more
        end = text.rfind("\n")
        if end < 0:
            self._held.append(text)
            return []
        lines = "".join(self._held) + text[:end]
        self._held = [text[end + 1 :]]
        return [Text(self._tag, lines)]

    def _rest(self) -> list[TranscriptEvent]:
        rest = "".join(self._held)
        self._held = []
        return [Text(self._tag, rest)] if rest else []

    def stop(self) -> list[TranscriptEvent]:
        """The block that was coming in fragments is over."""
        if not self.parts:
            return []
        text = "".join(self.parts)
        self.parts = []
        self._size = 0
        self._keep(text)
        if self._remembered:
            self.said.add(text)
        held = self._held
        if not held:
            return []
        self._held = []
        rest = "".join(held)
        return [Text(self._tag, rest)] if rest else []

    def _keep(self, text: str) -> None:
        whole = self._whole
        whole.append(text)
        self._whole_size += len(text)
        if len(whole) > _MOST_BLOCKS:
            del whole[0]
        if self._whole_size > _deltas.MAX_HELD:
            size = sum(map(len, whole))
            while len(whole) > 1 and size - len(whole[0]) > _deltas.MAX_HELD:
                size -= len(whole.pop(0))
            self._whole_size = size

    def restart(self) -> list[TranscriptEvent]:
        """A new message begins: full copies of the one before will not come any more."""
        events = self.stop() if self.parts else []
        if self._whole:
            self._whole, self._whole_size = [], 0
        return events

    def full(self, text: str) -> list[TranscriptEvent]:
        """A whole block: what of it has not been shown yet."""
        if self.parts:
            shown = "".join(self.parts)
            if text == shown:
                self.parts, self._size = [], 0
                if self._remembered:
                    self.said.add(text)
                return self._rest()
            if text.startswith(shown):
                events = self.fragment(text[len(shown) :]) + self._rest()
                self.parts, self._size = [], 0
                if self._remembered:
                    self.said.add(text)
                return events
            events = self.stop()
        elif self._whole:
            events = []
        else:
            if self._remembered:
                self.said.add(text)
            return [Text(self._tag, text)]
        if text in self._whole:
            self._whole.remove(text)
            return events
        bare = text.strip()
        for index, known in enumerate(self._whole):
            if bare and known.strip().endswith(bare):
                del self._whole[index]
                return events
        if self._remembered:
            self.said.add(text)
        return [*events, Text(self._tag, text)]


def _squash(text: str) -> str:
    return "".join(text.split())
