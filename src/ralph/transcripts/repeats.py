"""Text that comes twice is shown once: in fragments and then whole, or in messages and then in a result."""

from __future__ import annotations

from collections import deque
from io import StringIO
from typing import TYPE_CHECKING

from ralph.transcripts import deltas
from ralph.transcripts.events import Tag, Text

if TYPE_CHECKING:
    from ralph.transcripts.events import TranscriptEvent

#: A copy is recognised by about this many of the latest characters, so that memory does not grow with a run.
_KEPT = 1 << 20
#: A message has few blocks. If full copies never come, the oldest blocks are forgotten.
_MOST_BLOCKS = 256


class Said:
    """The agent's latest messages, to recognise a copy of them."""

    def __init__(self) -> None:
        self._texts: deque[str] = deque()
        self._size = 0
        self._dropped = False

    def add(self, text: str) -> None:
        self._texts.append(text)
        self._size += len(text) + deltas.FRAGMENT
        while self._size > _KEPT and len(self._texts) > 1:
            self._size -= len(self._texts.popleft()) + deltas.FRAGMENT
            self._dropped = True

    def knows(self, text: str) -> bool:
        """Whether the text is one of the latest messages."""
        bare = text.strip()
        return any(known.strip() == bare for known in self._texts)

    def repeats(self, text: str) -> bool:
        """Whether the text is the last message or all of them joined. Spaces do not count: CLIs trim and join."""
        new = _without_spaces(text)
        if not new:
            return True
        latest: deque[str] = deque()
        size = 0
        for known in reversed(self._texts):
            if size >= len(new):
                break
            latest.appendleft(_without_spaces(known))
            size += len(latest[0])
        old = "".join(latest)
        return bool(old) and (old.endswith(new) or (self._dropped and new.endswith(old)))


class Streamed:
    """Text of one tag that may come in fragments, and then again in one piece."""

    def __init__(self, tag: Tag) -> None:
        self._tag = tag
        self._lines = deltas.DeltaLines(tag)
        self._block = StringIO()  # all of the current block, to compare it with its copy
        self._finished: deque[str] = deque(maxlen=_MOST_BLOCKS)  # blocks whose full copy has not come yet
        self.said = Said()

    def fragment(self, text: str) -> list[TranscriptEvent]:
        """Add a fragment to the current block. Return the lines that it completes."""
        self._block.write(text)
        events = self._lines.feed(text)
        # No real block is this long: show it, and do not wait for its copy.
        return events + self.stop() if self._block.tell() > deltas.MAX_HELD else events

    def stop(self) -> list[TranscriptEvent]:
        """End the current block, if there is one."""
        text = self._take_block()
        if not text:
            return []
        self.said.add(text)
        self._finished.append(text)
        while len(self._finished) > 1 and sum(map(len, self._finished)) > deltas.MAX_HELD:
            self._finished.popleft()
        return self._lines.flush()

    def restart(self) -> list[TranscriptEvent]:
        """Begin a new message: full copies of earlier blocks will not come any more."""
        events = self.stop()
        self._finished.clear()
        return events

    def full(self, text: str) -> list[TranscriptEvent]:
        """Add a complete block. Return the part of it that has not been shown yet."""
        shown = self._block.getvalue()
        if shown and text.startswith(shown):
            self._take_block()
            self.said.add(text)
            return self._lines.feed(text[len(shown) :]) + self._lines.flush()
        events = self.stop()
        if not self._is_copy(text):
            self.said.add(text)
            events.append(Text(self._tag, text))
        return events

    def _take_block(self) -> str:
        text = self._block.getvalue()
        if text:
            self._block = StringIO()
        return text

    def _is_copy(self, text: str) -> bool:
        """Whether this is the full copy of a finished block. Each block has only one."""
        bare = text.strip()
        original = text if text in self._finished else None
        if original is None and bare:
            original = next((known for known in self._finished if known.strip().endswith(bare)), None)
        if original is None:
            return False
        self._finished.remove(original)
        return True


def _without_spaces(text: str) -> str:
    return "".join(text.split())
