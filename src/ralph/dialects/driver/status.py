"""The RALPH_STATUS block, in which agents of the driver convention report their progress.

---RALPH_STATUS---
STATUS: IN_PROGRESS | COMPLETE | BLOCKED
EXIT_SIGNAL: true | false
RECOMMENDATION: one line
---END_RALPH_STATUS---
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from ralph.dialects.driver import fix_plan
from ralph.judging.echo import Recent, repeats
from ralph.judging.signals import Claim, Fence, FinalMessage, Markers, Signal, has_fence
from ralph.transcripts.events import decode_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BEGIN = "---RALPH_STATUS---"
_END = "---END_RALPH_STATUS---"
_FIELD = re.compile(r"\s*([A-Z_]+)\s*:\s*(.*?)\s*$")
#: A block has eight fields. Text that is much longer is not a block.
_MAX_LINES = 100
_MAX_BLOCKS = 20
#: In this convention, an agent must say twice that it is done, unless its plan says so too.
_TIMES = 2
_SHOWN = 200
#: Keys under which an unknown agent's JSON may contain its text.
_TEXT_KEYS = frozenset({"result", "response", "output", "text", "content", "message", "parts", "part", "item", "data"})
#: Types and roles of text that is not the agent's own. A tuple, because a value in JSON may not be hashable.
_NOT_ITS_OWN = ("user", "system", "tool", "tool_use", "tool_result", "tool_call", "function_call_output")


class Status(StrEnum):
    IN_PROGRESS = "IN_PROGRESS"
    COMPLETE = "COMPLETE"
    BLOCKED = "BLOCKED"


class Block(msgspec.Struct, frozen=True):
    """The fields of a block that matter. None: the block does not have it."""

    status: Status | None = None
    exit_signal: bool | None = None
    recommendation: str = ""

    @property
    def summary(self) -> str:
        parts = [] if self.status is None else [f"STATUS: {self.status}"]
        parts += [] if self.exit_signal is None else [f"EXIT_SIGNAL: {str(self.exit_signal).lower()}"]
        advice = f" ({self.recommendation[:_SHOWN]})" if self.recommendation else ""
        return ", ".join(parts) + advice


def parse(lines: list[str]) -> Block | None:
    """Reads the lines between the markers. None if they decide nothing, such as a template that lists the choices."""
    fields = {found[1]: found[2] for line in lines if (found := _FIELD.match(line))}
    status = fields.get("STATUS", "").upper()
    signal = {"true": True, "false": False}.get(fields.get("EXIT_SIGNAL", "").lower())
    block = Block(Status(status) if status in list(Status) else None, signal, fields.get("RECOMMENDATION", ""))
    return block if block.status is not None or block.exit_signal is not None else None


class _Found(msgspec.Struct, frozen=True):
    """A block, and where it was."""

    block: Block
    #: the end of what was printed before it
    before: str
    fenced: bool


class StatusReader:
    """Finds the last whole block in the agent's final message. Without any block, the completion markers count.

    Models like to put the block into a code fence, as prompts do. There it counts at the end of the message only:
    elsewhere, it is an example.
    """

    def __init__(self, markers: Markers, plan: Path | None = None) -> None:
        self._markers = FinalMessage(markers)
        self._plan = plan
        self._done_before = plan is not None and fix_plan.count(plan).complete
        self._recent = Recent()
        self._begin()

    def _begin(self) -> None:
        self._boundary = False
        self._fence = Fence()
        #: the lines of the block that has begun, if any, and what was printed before it
        self._open: list[str] | None = None
        self._before = ""
        self._found: list[_Found] = []
        #: whether other words follow the last block
        self._followed = False
        self._json = False

    def feed(self, text: str) -> None:
        self._markers.feed(text)
        if self._boundary and text.strip():
            self._begin()
        if self._open is None and not self._json and "RALPH_STATUS---" not in text and not has_fence(text):
            self._recent.add(text)
            self._followed = self._followed or bool(text.strip())
            return
        for line in text.split("\n"):
            self._line(line)

    def boundary(self, text: str = "") -> None:
        self._markers.boundary(text)
        self._boundary = True
        self._open = None
        self._recent.add(text)

    def _line(self, line: str) -> None:
        before = self._recent.text
        if line.startswith("{") and (self._json or _BEGIN in line):
            self._json_line(line)
            return
        self._recent.add(line)
        if line.startswith(_BEGIN):
            self._open, self._before = [], before
        elif self._open is not None:
            self._in_block(self._open, line)
        elif not self._fence.feed(line.strip()) and line.strip():
            self._followed = True

    def _in_block(self, lines: list[str], line: str) -> None:
        if line.startswith(_END):
            self._open = None
            block = parse(lines)
            if block is not None:
                self._found = [*self._found, _Found(block, self._before, bool(self._fence))][-_MAX_BLOCKS:]
                self._followed = False
        elif len(lines) >= _MAX_LINES:
            self._open = None
        else:
            lines.append(line)

    def _json_line(self, line: str) -> None:
        """A line of an unknown agent's JSON: its texts are one message."""
        texts = _texts_in(line)
        if not texts:
            return
        self._begin()
        for text in texts:
            for inner in text.split("\n"):
                self._line(inner if not inner.startswith("{") else "")
        self._open = None
        self._json = True

    def _block(self, prompt: str | None) -> Block | None:
        """The last block that is the agent's own. `prompt` is None if its words are known to be its own."""
        for number, found in enumerate(reversed(self._found)):
            example = found.fenced and (number > 0 or self._followed)
            if not example and not repeats(prompt, found.before, _BEGIN):
                return found.block
        return None

    def claim(self, *, structured: bool, prompt: str | None = None) -> Claim:
        boxes = fix_plan.count(self._plan) if self._plan is not None else fix_plan.Boxes()
        block = self._block(None if structured else prompt)
        ticked = Claim(Signal.COMPLETE, f"every box in {self._name} is ticked ({boxes.ticked} of {boxes.ticked})")
        if block is None:
            claim = self._markers.claim(structured=structured, prompt=prompt)
            if claim.signal is not Signal.NONE:
                return self._checked(claim, boxes)
            return ticked if boxes.complete else Claim(Signal.NONE, f"no RALPH_STATUS block; {claim.why}")
        reported = f"the agent's RALPH_STATUS block says {block.summary}"
        if block.status is Status.BLOCKED:
            return Claim(Signal.QUESTION, reported)
        done = block.exit_signal if block.exit_signal is not None else block.status is Status.COMPLETE
        if done:
            return self._checked(Claim(Signal.COMPLETE, reported, times=1 if boxes.complete else _TIMES), boxes)
        # A plan whose boxes are all ticked ends the run, but an agent that says "not yet" gets one more try.
        if boxes.complete and (block.exit_signal is None or self._done_before):
            return ticked
        return Claim(Signal.NONE, reported)

    def _checked(self, claim: Claim, boxes: fix_plan.Boxes) -> Claim:
        """Rejects a claim of completion that the plan contradicts."""
        if claim.signal is not Signal.COMPLETE or not boxes.open:
            return claim
        what = "1 box is" if boxes.open == 1 else f"{boxes.open} boxes are"
        return Claim(Signal.NONE, f"{claim.why}, but {what} still open in {self._name}")

    @property
    def _name(self) -> str:
        return self._plan.name if self._plan is not None else "the plan"


def _texts_in(line: str) -> list[str]:
    """The agent's texts in a line of JSON."""
    try:
        return [text for text in _own_texts(decode_json(line)) if text.strip()]
    except (ValueError, RecursionError):
        return []


def _own_texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from _own_texts(item)
        case dict():
            if value.get("role") in _NOT_ITS_OWN or value.get("type") in _NOT_ITS_OWN:
                return
            for key, inner in value.items():
                if key in _TEXT_KEYS:
                    yield from _own_texts(inner)
