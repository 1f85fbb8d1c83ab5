"""Lines that are kept until it is clear what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ralph.transcripts.deltas import FRAGMENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.transcripts.events import TranscriptEvent

#: In bytes, with Python's own for each line. No message and the thoughts before it are this long together, so the
#: oldest lines of more than this are certainly output.
MOST_HELD = 4 << 20


class HeldLines:
    """At least the last `MOST_HELD` bytes of lines, and at most twice as many. `hand_on` gets the lines before them."""

    __slots__ = ("_hand_on", "_new", "_old", "_size")

    def __init__(self, hand_on: Callable[[list[str]], list[TranscriptEvent]]) -> None:
        self._hand_on = hand_on
        self._old: list[str] = []
        self._new: list[str] = []
        self._size = 0

    def add(self, line: str) -> list[TranscriptEvent]:
        """The events of the lines that were dropped for this one."""
        self._new.append(line)
        self._size += len(line) + FRAGMENT
        if self._size < MOST_HELD:
            return []
        dropped, self._old, self._new, self._size = self._old, self._new, [], 0
        return self._hand_on(dropped) if dropped else []

    def lines(self) -> list[str]:
        return self._old + self._new

    def replace(self, lines: list[str]) -> None:
        self._old, self._new, self._size = lines, [], 0

    def take(self) -> list[str]:
        """All lines, and forgets them."""
        lines = self._old + self._new
        self._old, self._new, self._size = [], [], 0
        return lines
