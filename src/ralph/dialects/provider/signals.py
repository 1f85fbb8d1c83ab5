"""`<<<RALPHEX:…>>>`: how that convention's agents say where they are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from ralph.judging.signals import Claim, FinalMessage, Markers, Signal
from ralph.transcripts.events import decode_json

if TYPE_CHECKING:
    from collections.abc import Callable

_DONE = frozenset({"ALL_TASKS_DONE", "COMPLETED"})
#: They end another kind of prompt than that of a plan's tasks.
_OF_OTHER_PROMPTS = frozenset({"REVIEW_DONE", "CODEX_REVIEW_DONE", "PLAN_READY"})
_FAILED = {"TASK_FAILED": Signal.TASK_FAILED, "FAILED": Signal.FAILED}
_BLOCKS = frozenset({"QUESTION", "PLAN_DRAFT"})

_SIGNAL = re.compile(r"<<<RALPHEX:([A-Z_]+)>>>")
_END = "<<<RALPHEX:END>>>"
#: A line that ends within a signal: some wrappers put a newline behind every fragment of a model's words.
_CUT = re.compile(r"(?:<{1,3}|<<<R(?:A(?:L(?:P(?:H(?:E(?:X)?)?)?)?)?)?|<<<RALPHEX:[A-Z_]*>{0,2})$")
_LONGEST_CUT = 4096
#: What people and models put around a line that is meant as it stands.
_DECORATION = " \t*_`>#-.!:"
#: How much of a question or a draft is kept.
_KEPT = 64 << 10


class _Block(msgspec.Struct):
    name: str
    lines: list[str]
    size: int = 0


class RalphexReader:
    """Follows the agent's words line by line.

    A signal counts where it stands alone on its line, or begins or ends it, outside code fences and quotes; words
    that follow a tool call are a new message, and what was said before it does not count any more. `objection` is
    asked when all tasks are said to be done: why that cannot be. The usual markers count as well.
    """

    def __init__(self, objection: Callable[[], str | None] | None = None, markers: Markers | None = None) -> None:
        self._objection = objection
        self._usual = FinalMessage(markers or Markers())
        self._mentioned = ""
        self._last = ""
        self.draft = ""
        self._begin()

    def _begin(self) -> None:
        self._boundary = False
        self._fence = ""
        self._signal = ""
        self._block: _Block | None = None
        self._cut = ""
        self.question = ""

    def boundary(self) -> None:
        self._boundary = True
        self._usual.boundary()

    def feed(self, text: str) -> None:
        self._usual.feed(text)
        if self._boundary and text.strip():
            self._begin()
        if not (self._block or self._fence or self._cut) and not _is_of_interest(text):
            if text.strip():
                self._last = ""  # only a signal's line is of interest
            return
        for line in text.split("\n"):
            self._whole(line)

    def _whole(self, line: str) -> None:
        """A line, put together again where a signal was cut in two."""
        whole, self._cut = self._cut + line, ""
        if len(whole) <= _LONGEST_CUT and self._block is None and _CUT.search(whole):
            self._cut = whole
        else:
            self._line(whole)

    def _line(self, line: str) -> None:
        if self._block is not None:
            self._in_block(line)
            return
        bare = line.strip()
        if not bare:
            return
        if bare.startswith(("```", "~~~")):
            self._fence = "" if self._fence and bare.startswith(self._fence) else self._fence or bare[:3]
            return
        if "<<<RALPHEX:" not in line:
            self._last = ""
            return
        opened = next((m for m in _SIGNAL.finditer(line) if m.group(1) in _BLOCKS), None)
        if opened is not None and not self._fence and not line[: opened.start()].strip(_DECORATION):
            self._block = _Block(opened.group(1), [])
            self._in_block(line[opened.end() :])
            return
        found = "" if self._fence else signal_of(line)
        self._last = found
        if found:
            self._signal = found
        elif mentioned := _SIGNAL.search(line):
            self._mentioned = mentioned.group(0)

    def _in_block(self, line: str) -> None:
        block = self._block
        assert block is not None
        before, end, after = line.partition(_END)
        if block.size < _KEPT:
            block.lines.append(before)
            block.size += len(before) + 1
        if not end:
            return
        self._block = None
        content = "\n".join(block.lines).strip()
        if block.name == "QUESTION":
            self.question = content
        else:
            self.draft = content
        if after.strip():
            self._line(after)

    def claim(self, *, structured: bool) -> Claim:
        """Without structure only a last line counts: what is before it may be anybody's words."""
        signal = self._signal if structured else self._last
        if self.question:
            return Claim(Signal.QUESTION, f"the agent asks: {asked(self.question)}")
        if signal in _FAILED:
            return Claim(_FAILED[signal], f"the agent says that it failed ({_written(signal)})")
        if signal in _DONE or (signal in _OF_OTHER_PROMPTS and self._objection is None):
            return self._checked(Claim(Signal.COMPLETE, f"the agent printed {_written(signal)}"))
        usual = self._usual.claim(structured=structured)
        if usual.signal is not Signal.NONE:
            return self._checked(usual)
        if self.draft:
            return Claim(Signal.QUESTION, "the agent drafted a plan, and waits for a person to accept or change it")
        if signal:
            return Claim(Signal.NONE, f"the agent printed {_written(signal)}, which does not end the tasks of a plan")
        if self._mentioned:
            return Claim(Signal.NONE, f"the agent mentioned {self._mentioned}, but not as a line of its final message")
        return Claim(Signal.NONE, "the agent did not print <<<RALPHEX:ALL_TASKS_DONE>>>")

    def _checked(self, claim: Claim) -> Claim:
        """Unless something speaks against it."""
        objection = self._objection() if self._objection and claim.signal is Signal.COMPLETE else None
        return claim if objection is None else Claim(Signal.NONE, f"{claim.why}, but {objection}")


def _is_of_interest(text: str) -> bool:
    return "<<<" in text or "```" in text or "~~~" in text or text.rstrip().endswith("<")


def signal_of(line: str) -> str:
    """The signal that this line gives: alone in it, or at its beginning or end and not in quotes."""
    known = [m for m in _SIGNAL.finditer(line) if m.group(1) in _DONE | _OF_OTHER_PROMPTS | _FAILED.keys()]
    for found in reversed(known):
        before, after = line[: found.start()].strip(_DECORATION), line[found.end() :].strip(_DECORATION)
        if not before and not after:
            return found.group(1)
        if line[found.end() : found.end() + 1].isalnum():
            after = ""  # the next piece of text, which some wrappers join without a newline
        quoted = line[: found.start()].endswith(("`", '"', "'")) or line[found.end() :].startswith(("`", '"', "'"))
        if not quoted and (not before or not after):
            return found.group(1)
    return ""


def asked(question: str) -> str:
    """The question out of its JSON, with the answers to choose from; as it stands if it is none."""
    try:
        value = decode_json(question)
    except (ValueError, RecursionError):
        return question[:500]
    if not isinstance(value, dict) or not isinstance(value.get("question"), str):
        return question[:500]
    options = value.get("options")
    chosen = [str(o) for o in options] if isinstance(options, list) else []
    words: str = value["question"]
    return words + (f" ({' / '.join(chosen)})" if chosen else "")


def _written(name: str) -> str:
    return f"<<<RALPHEX:{name}>>>"
