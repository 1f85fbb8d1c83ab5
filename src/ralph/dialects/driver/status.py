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
from ralph.judging.signals import Claim, FinalMessage, Markers, Signal
from ralph.transcripts.events import decode_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BEGIN = "---RALPH_STATUS---"
_END = "---END_RALPH_STATUS---"
_FIELD = re.compile(r"\s*([A-Z_]+)\s*:\s*(.*?)\s*$")
#: A block has eight fields. Text that is much longer is not a block.
_MAX_LINES = 100
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


class StatusReader:
    """Finds the last whole block in the agent's text. Without any block, the completion markers count."""

    def __init__(self, markers: Markers, plan: Path | None = None) -> None:
        self._markers = FinalMessage(markers)
        self._plan = plan
        self._done_before = plan is not None and fix_plan.count(plan).complete
        #: the lines of the block that has begun, if any
        self._open: list[str] | None = None
        self.block: Block | None = None

    def feed(self, text: str) -> None:
        self._markers.feed(text)
        if self._open is None and "RALPH_STATUS---" not in text:
            return
        for line in text.split("\n"):
            self._line(line)

    def boundary(self) -> None:
        self._markers.boundary()
        self._open = None

    def _line(self, line: str) -> None:
        if line.startswith("{") and _BEGIN in line:
            for text in _texts_in(line):
                self._open = None
                for inner in text.split("\n"):
                    self._line(inner if not inner.startswith("{") else "")
            self._open = None
        elif line.startswith(_BEGIN):
            self._open = []
        elif self._open is None:
            pass
        elif line.startswith(_END):
            self.block = parse(self._open) or self.block
            self._open = None
        elif len(self._open) >= _MAX_LINES:
            self._open = None
        else:
            self._open.append(line)

    def claim(self, *, structured: bool) -> Claim:
        boxes = fix_plan.count(self._plan) if self._plan is not None else fix_plan.Boxes()
        block = self.block
        ticked = Claim(Signal.COMPLETE, f"every box in {self._name} is ticked ({boxes.ticked} of {boxes.ticked})")
        if block is None:
            claim = self._markers.claim(structured=structured)
            if claim.signal is not Signal.NONE:
                return claim
            return ticked if boxes.complete else Claim(Signal.NONE, f"no RALPH_STATUS block; {claim.why}")
        reported = f"the agent's RALPH_STATUS block says {block.summary}"
        if block.status is Status.BLOCKED:
            return Claim(Signal.QUESTION, reported)
        done = block.exit_signal if block.exit_signal is not None else block.status is Status.COMPLETE
        if done:
            return Claim(Signal.COMPLETE, reported + self._open_boxes(boxes.open))
        # A plan whose boxes are all ticked ends the run, but an agent that says "not yet" gets one more try.
        if boxes.complete and (block.exit_signal is None or self._done_before):
            return ticked
        return Claim(Signal.NONE, reported)

    def _open_boxes(self, count: int) -> str:
        if not count:
            return ""
        return f"; {count} {'box' if count == 1 else 'boxes'} in {self._name} {'is' if count == 1 else 'are'} open"

    @property
    def _name(self) -> str:
        return self._plan.name if self._plan is not None else "the plan"


def _texts_in(line: str) -> list[str]:
    """The agent's texts in a line of JSON that contain a block."""
    try:
        return [text for text in _own_texts(decode_json(line)) if _BEGIN in text]
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
