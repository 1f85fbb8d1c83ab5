"""Finds the markers with which an agent says that it is done, in its own words and nowhere else."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

import msgspec

DEFAULT_COMPLETE = ("<promise>COMPLETE</promise>", "LOOP_COMPLETE")
DEFAULT_REPLAN = ("<promise>REPLAN</promise>",)
_FENCES = ("```", "~~~")


class Markers(msgspec.Struct, frozen=True):
    complete: tuple[str, ...] = DEFAULT_COMPLETE
    replan: tuple[str, ...] = DEFAULT_REPLAN

    @classmethod
    def configured(cls, promise: str | None) -> Markers:
        """A configured promise replaces the defaults. It counts with and without promise tags."""
        promise = (promise or "").strip()
        if not promise:
            return cls()
        wrapped = promise if promise.startswith("<") else f"<promise>{promise}</promise>"
        return cls(complete=tuple(dict.fromkeys((promise, wrapped))))


class Signal(StrEnum):
    NONE = "none"
    COMPLETE = "complete"
    REPLAN = "replan"
    #: the agent says that this iteration's task failed; it may be tried again
    TASK_FAILED = "task_failed"
    #: the agent says that the whole job failed
    FAILED = "failed"
    #: the agent asks a person
    QUESTION = "question"


class Claim(msgspec.Struct, frozen=True):
    """What the agent signalled, and why we think so."""

    signal: Signal
    why: str


class SignalReader(Protocol):
    """Reads the agent's own words and says what they signal in the end. A dialect may have its own reader."""

    def feed(self, text: str) -> None: ...

    def boundary(self) -> None:
        """Called when something other than words happened."""

    def claim(self, *, structured: bool) -> Claim:
        """`structured`: the words are known to be the agent's own, message by message."""


class FinalMessage:
    """Reads the agent's words and keeps only what it takes to judge the last message, however long that is."""

    def __init__(self, markers: Markers) -> None:
        self._markers = markers
        self._all = markers.complete + markers.replan
        self._longest = max(len(m) for m in self._all) + 64
        self.mentioned = ""  # a marker anywhere in the agent's words
        self.last_line = ""
        self._begin()

    def _begin(self) -> None:
        self._boundary = False
        self._fence = ""
        self._complete = ""
        self._replan = ""

    def boundary(self) -> None:
        """Something other than words happened: words after it are a new message."""
        self._boundary = True

    def feed(self, text: str) -> None:
        if self._boundary and text.strip():
            self._begin()
        found = ""
        for marker in self._all:
            if marker in text:
                found = marker
                break
        if not found and "```" not in text and "~~~" not in text:
            self._note_last(text)
            return
        if found:
            self.mentioned = found
        for line in text.split("\n"):
            self._feed_line(line)

    def _note_last(self, text: str) -> None:
        last = text.rstrip()
        if last:
            # The beginning is enough: it is longer than any marker.
            self.last_line = last.rpartition("\n")[2].strip()[: self._longest] if len(last) > 200 else last

    def _feed_line(self, line: str) -> None:
        self._note_last(line)
        bare = line.strip() if len(line) <= self._longest + 1000 else ""
        if bare.startswith(_FENCES):
            fence = bare[: len(bare) - len(bare.lstrip(bare[0]))]
            if not self._fence:
                if fence[0] == "~" or "`" not in bare[len(fence) :]:  # else it is `code` within a line
                    self._fence = fence
            elif bare == fence and fence.startswith(self._fence):  # as long as the opening one, or longer
                self._fence = ""
            return
        if self._fence:
            return
        if bare in self._markers.complete:
            self._complete = bare
        elif bare in self._markers.replan:
            self._replan = bare

    def claim(self, *, structured: bool) -> Claim:
        """Structured: alone on a line of the final message, outside fences. Plain: the last line of all."""
        complete, replan, where = self._complete, self._replan, "alone on a line of its final message"
        if not structured:
            last = self.last_line.rpartition("\n")[2].strip()
            complete = last if last in self._markers.complete else ""
            replan = last if last in self._markers.replan else ""
            where = "as the last line of its output"
        if complete:
            return Claim(Signal.COMPLETE, f"the agent printed {complete} {where}")
        if replan:
            return Claim(Signal.REPLAN, f"the agent printed {replan} {where}")
        if self.mentioned:
            return Claim(Signal.NONE, f"the agent mentioned {self.mentioned}, but not {where}")
        return Claim(Signal.NONE, f"the agent did not print {' or '.join(self._markers.complete)}")
