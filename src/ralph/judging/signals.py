"""Finds the markers with which an agent says that it is done, in its own words and nowhere else."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

import msgspec

from ralph.judging.echo import Recent, repeats

DEFAULT_COMPLETE = ("<promise>COMPLETE</promise>", "LOOP_COMPLETE")
DEFAULT_REPLAN = ("<promise>REPLAN</promise>",)
_FENCES = ("```", "~~~")
#: Emphasis and inline code, which may surround a marker.
_DECORATION = "*_`"
_MOST_DECORATION = 8


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
    #: how many such claims in a row it takes, at least
    times: int = 1


class SignalReader(Protocol):
    """Reads the agent's own words and says what they signal in the end. A dialect may have its own reader."""

    def feed(self, text: str) -> None: ...

    def boundary(self, text: str = "") -> None:
        """Called when something other than words happened. `text` was printed then."""

    def claim(self, *, structured: bool, prompt: str | None = None) -> Claim:
        """`structured`: the words are known to be the agent's own, message by message. Otherwise they may repeat the
        `prompt`."""


class Fence:
    """Follows the code fences of a message, line by line."""

    def __init__(self) -> None:
        self._opened = ""

    def __bool__(self) -> bool:
        """Whether the next line is code."""
        return bool(self._opened)

    def feed(self, bare: str) -> bool:
        """Whether this line begins with a fence. `bare` has no blanks around it."""
        if not bare.startswith(_FENCES):
            return False
        fence = bare[: len(bare) - len(bare.lstrip(bare[0]))]
        if not self._opened:
            if fence[0] == "~" or "`" not in bare[len(fence) :]:  # else it is `code` within a line
                self._opened = fence
        elif bare == fence and fence.startswith(self._opened):  # as long as the opening one, or longer
            self._opened = ""
        return True


def has_fence(text: str) -> bool:
    return "```" in text or "~~~" in text


class FinalMessage:
    """Reads the agent's words and keeps only what it takes to judge the last message, however long that is."""

    def __init__(self, markers: Markers) -> None:
        self._markers = markers
        self._all = markers.complete + markers.replan
        self._longest = max(len(m) for m in self._all) + 64
        self.mentioned = ""  # a marker anywhere in the agent's words
        self.last_line = ""
        self._recent = Recent()
        self._begin()

    def _begin(self) -> None:
        self._boundary = False
        self._fence = Fence()
        self._complete = ""
        self._replan = ""

    def boundary(self, text: str = "") -> None:
        """Something other than words happened: words after it are a new message."""
        self._boundary = True
        self.last_line = ""
        self._recent.add(text)

    @property
    def before_last_line(self) -> str:
        """The end of what was printed before the last line of all."""
        return self._recent.before_last_line

    def feed(self, text: str) -> None:
        self._recent.add(text)
        if self._boundary and text.strip():
            self._begin()
        found = ""
        for marker in self._all:
            if marker in text:
                found = marker
                break
        if not found and not has_fence(text):
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
        if self._fence.feed(bare) or self._fence:
            return
        marker = self._marker(bare)
        if marker in self._markers.complete:
            self._complete = marker
        elif marker:
            self._replan = marker

    def _marker(self, bare: str) -> str:
        """The marker that is alone on a line, also in emphasis or as inline code: `**LOOP_COMPLETE**`."""
        for _ in range(_MOST_DECORATION):
            if bare in self._all or len(bare) < 3 or bare[0] not in _DECORATION or bare[-1] != bare[0]:
                break
            bare = bare[1:-1]
        return bare if bare in self._all else ""

    def claim(self, *, structured: bool, prompt: str | None = None) -> Claim:
        """Structured: alone on a line of the final message, outside fences. Plain: the last line of all, unless it
        repeats the prompt."""
        complete, replan, where = self._complete, self._replan, "alone on a line of its final message"
        if not structured:
            last = self._marker(self.last_line.rpartition("\n")[2].strip())
            where = "as the last line of its output"
            if last and repeats(prompt, self.before_last_line, last):
                return Claim(Signal.NONE, f"the last lines of the output, with {last}, repeat the prompt")
            complete, replan = (last, "") if last in self._markers.complete else ("", last)
        if complete:
            return Claim(Signal.COMPLETE, f"the agent printed {complete} {where}")
        if replan:
            return Claim(Signal.REPLAN, f"the agent printed {replan} {where}")
        if self.mentioned:
            return Claim(Signal.NONE, f"the agent mentioned {self.mentioned}, but not {where}")
        return Claim(Signal.NONE, f"the agent did not print {' or '.join(self._markers.complete)}")
