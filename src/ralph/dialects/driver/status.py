"""The RALPH_STATUS block by which agents of the driver convention say how far they are, and what it means.

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
#: A block has eight fields; what goes on and on is none.
_MOST_LINES = 100
_SHOWN = 200
#: Where the JSON of an agent that we do not know keeps its words, and what is said by others.
_WORDS = frozenset({"result", "response", "output", "text", "content", "message", "parts", "part", "item", "data"})
#: Not a set: an agent's JSON may have anything in that place, also what no set can look up.
_NOT_ITS_OWN = ("user", "system", "tool", "tool_use", "tool_result", "tool_call", "function_call_output")


class Status(StrEnum):
    IN_PROGRESS = "IN_PROGRESS"
    COMPLETE = "COMPLETE"
    BLOCKED = "BLOCKED"


class Block(msgspec.Struct, frozen=True):
    """What a block says; None is what it does not say."""

    status: Status | None = None
    exit_signal: bool | None = None
    recommendation: str = ""

    @property
    def says(self) -> str:
        parts = [] if self.status is None else [f"STATUS: {self.status}"]
        parts += [] if self.exit_signal is None else [f"EXIT_SIGNAL: {str(self.exit_signal).lower()}"]
        advice = f" ({self.recommendation[:_SHOWN]})" if self.recommendation else ""
        return ", ".join(parts) + advice


def parse(lines: list[str]) -> Block | None:
    """The lines between the markers. None if they decide nothing, as in a template that lists the choices."""
    fields = {found[1]: found[2] for line in lines if (found := _FIELD.match(line))}
    status = fields.get("STATUS", "").upper()
    signal = {"true": True, "false": False}.get(fields.get("EXIT_SIGNAL", "").lower())
    block = Block(Status(status) if status in list(Status) else None, signal, fields.get("RECOMMENDATION", ""))
    return block if block.status is not None or block.exit_signal is not None else None


class StatusReader:
    """Follows the agent's words; the last whole block counts. Without any, the usual markers do."""

    def __init__(self, markers: Markers, plan: Path | None = None) -> None:
        self._usual = FinalMessage(markers)
        self._plan = plan
        self._done_before = plan is not None and fix_plan.count(plan).complete
        self._open: list[str] | None = None
        self.block: Block | None = None

    def feed(self, text: str) -> None:
        self._usual.feed(text)
        if self._open is None and "RALPH_STATUS---" not in text:
            return
        for line in text.split("\n"):
            self._line(line)

    def boundary(self) -> None:
        self._usual.boundary()
        self._open = None

    def _line(self, line: str) -> None:
        if line.startswith("{") and _BEGIN in line:
            for words in _from_json(line):
                self._open = None
                for inner in words.split("\n"):
                    self._line(inner if not inner.startswith("{") else "")
            self._open = None
        elif line.startswith(_BEGIN):
            self._open = []
        elif self._open is None:
            pass
        elif line.startswith(_END):
            self.block = parse(self._open) or self.block
            self._open = None
        elif len(self._open) >= _MOST_LINES:
            self._open = None
        else:
            self._open.append(line)

    def claim(self, *, structured: bool) -> Claim:
        boxes = fix_plan.count(self._plan) if self._plan is not None else fix_plan.Boxes()
        block = self.block
        ticked = Claim(Signal.COMPLETE, f"all {boxes.ticked} boxes of {self._name} are ticked")
        if block is None:
            usual = self._usual.claim(structured=structured)
            if usual.signal is not Signal.NONE:
                return usual
            return ticked if boxes.complete else Claim(Signal.NONE, f"no RALPH_STATUS block; {usual.why}")
        told = f"the agent's RALPH_STATUS block says {block.says}"
        if block.status is Status.BLOCKED:
            return Claim(Signal.QUESTION, told)
        done = block.exit_signal if block.exit_signal is not None else block.status is Status.COMPLETE
        if done:
            still = f"; {boxes.open} boxes of {self._name} are open" if boxes.open else ""
            return Claim(Signal.COMPLETE, told + still)
        # A plan that is ticked off ends the run, but an agent that says "not yet" gets one more try at it.
        if boxes.complete and (block.exit_signal is None or self._done_before):
            return ticked
        return Claim(Signal.NONE, told)

    @property
    def _name(self) -> str:
        return self._plan.name if self._plan is not None else "the plan"


def _from_json(line: str) -> list[str]:
    """The words in one line of JSON, in which their newlines are escaped."""
    try:
        return [text for text in _words(decode_json(line)) if _BEGIN in text]
    except (ValueError, RecursionError):
        return []


def _words(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from _words(item)
        case dict():
            if value.get("role") in _NOT_ITS_OWN or value.get("type") in _NOT_ITS_OWN:
                return
            for key, inner in value.items():
                if key in _WORDS:
                    yield from _words(inner)
