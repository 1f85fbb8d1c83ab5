"""Words that come twice: in fragments and then whole, in messages and then in a result. They are shown once."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ralph.transcripts import deltas
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

    def knows(self, text: str) -> bool:
        """Whether these are words of any of the latest messages."""
        bare = text.strip()
        return any(known.strip() == bare for known in self._texts)

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
        #: of the block that is coming in fragments now
        self.parts: list[str] = []
        self._line = 0  # the part in which its last line begins, which is not whole yet
        self._column = 0  # and where in that
        self._joined = 0  # so many of the parts are fragments that were joined
        self._most = deltas.MOST_FRAGMENTS  # the next ones are joined when there are so many parts
        self._size = 0  # of those that were joined
        self._whole: list[str] = []  # blocks that are complete, and of which no full copy has come yet
        self._whole_size = 0  # at least theirs: it is counted anew before any of them is forgotten
        self.said = Said()
        self._remembered = tag is Tag.AI  # nobody asks whether a thought was said before

    def fragment(self, text: str) -> list[TranscriptEvent]:
        events: list[TranscriptEvent] = []
        self.add(text, events)
        return events

    def add(self, text: str, events: list[TranscriptEvent]) -> None:
        """A fragment, with its events put to others: most have none."""
        if not text:
            return  # a keep-alive
        parts = self.parts
        parts.append(text)
        if "\n" in text:
            lines, _, rest = self._rest().rpartition("\n")
            events.append(Text(self._tag, lines))
            self._line, self._column = len(parts) - 1, len(text) - len(rest)
        if len(parts) >= self._most:
            self._join(events)

    def _rest(self) -> str:
        """What has not been shown yet."""
        line, column = self._line, self._column
        rest = "".join(self.parts[line:] if line else self.parts)
        return rest[column:] if column else rest

    def _join(self, events: list[TranscriptEvent]) -> None:
        """Many fragments of a few characters take much more memory than they say."""
        parts, at = self.parts, self._joined
        if self._line > at:
            self._column += sum(map(len, parts[at : self._line]))
            self._line = at
        parts[at:] = ["".join(parts[at:])]
        self._joined = at + 1
        self._most = self._joined + deltas.MOST_FRAGMENTS
        self._size += len(parts[at])
        if self._size > deltas.MAX_HELD:
            events += self.stop()  # no block is as long: it is shown, and not waited for any more

    def _over(self) -> str:
        """Forgets the block; returns what of it has not been shown."""
        rest = self._rest()
        self.parts = []
        self._line = self._column = 0
        if self._joined:
            self._joined = self._size = 0
            self._most = deltas.MOST_FRAGMENTS
        return rest

    def stop(self) -> list[TranscriptEvent]:
        """The block that was coming in fragments is over."""
        if not self.parts:
            return []
        text = "".join(self.parts)
        rest = self._over()
        self._keep(text)
        if self._remembered:
            self.said.add(text)
        return [Text(self._tag, rest)] if rest else []

    def _keep(self, text: str) -> None:
        whole = self._whole
        whole.append(text)
        self._whole_size += len(text)
        if len(whole) > _MOST_BLOCKS:
            del whole[0]
        if self._whole_size > deltas.MAX_HELD:
            size = sum(map(len, whole))
            while len(whole) > 1 and size - len(whole[0]) > deltas.MAX_HELD:
                size -= len(whole.pop(0))
            self._whole_size = size

    def restart(self) -> list[TranscriptEvent]:
        """A new message begins: full copies of the one before will not come any more."""
        events = self.stop() if self.parts else []
        if self._whole:
            self._whole, self._whole_size = [], 0
        return events

    def full(self, text: str) -> list[TranscriptEvent]:
        events: list[TranscriptEvent] = []
        self.add_full(text, events)
        return events

    def add_full(self, text: str, events: list[TranscriptEvent]) -> None:
        """A whole block: what of it has not been shown yet is put to other events."""
        if self.parts:
            shown = "".join(self.parts)
            if text.startswith(shown):
                if len(text) > len(shown):
                    self.add(text[len(shown) :], events)
                rest = self._over()
                if rest:
                    events.append(Text(self._tag, rest))
                if self._remembered:
                    self.said.add(text)
                return
            events += self.stop()
        if self._whole and self._is_copy(text):
            return
        if self._remembered:
            self.said.add(text)
        events.append(Text(self._tag, text))

    def _is_copy(self, text: str) -> bool:
        """Whether it is a block that came before; its full copy comes once."""
        if text in self._whole:
            self._whole.remove(text)
            return True
        bare = text.strip()
        for index, known in enumerate(self._whole):
            if bare and known.strip().endswith(bare):
                del self._whole[index]
                return True
        return False


def _squash(text: str) -> str:
    return "".join(text.split())
