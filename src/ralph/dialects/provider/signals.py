"""Reads `<<<RALPHEX:…>>>`, the signals of the provider convention."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from ralph.judging.echo import repeats
from ralph.judging.signals import Claim, FinalMessage, Markers, Signal
from ralph.transcripts.events import decode_json

if TYPE_CHECKING:
    from collections.abc import Callable

_DONE = frozenset({"ALL_TASKS_DONE", "COMPLETED"})
#: These end prompts of other kinds, not the tasks of a plan.
_DONE_WITHOUT_PLAN = frozenset({"REVIEW_DONE", "CODEX_REVIEW_DONE", "PLAN_READY"})
_FAILED = {"TASK_FAILED": Signal.TASK_FAILED, "FAILED": Signal.FAILED}
_BLOCKS = frozenset({"QUESTION", "PLAN_DRAFT"})

_SIGNAL = re.compile(r"<<<RALPHEX:([A-Z_]+)>>>")
_END = "<<<RALPHEX:END>>>"
#: A line that ends inside a signal: some wrappers print a newline after each fragment of a model's text.
_PARTIAL = re.compile(r"(?:<{1,3}|<<<R(?:A(?:L(?:P(?:H(?:E(?:X)?)?)?)?)?)?|<<<RALPHEX:[A-Z_]*>{0,2})$")
_MAX_PARTIAL = 4096
#: Markdown and punctuation that may surround a signal.
_DECORATION = " \t*_`>#-.!:"
#: The size up to which a question or a draft is kept, in characters.
_MAX_BLOCK = 64 << 10


class _Block(msgspec.Struct):
    name: str
    lines: list[str]
    size: int = 0


class RalphexReader:
    """Finds the signal in the agent's final message.

    A signal counts if it is alone on its line, or at the start or end of it, outside code fences and quotes. Text
    after a tool call is a new message, and signals before it no longer count. Completion markers count as well.
    `objection` is called when the agent claims to be done, and returns why it cannot be.
    """

    def __init__(self, objection: Callable[[], str | None] | None = None, markers: Markers | None = None) -> None:
        self._objection = objection
        self._markers = FinalMessage(markers or Markers())
        self._mentioned = ""
        self._last = ""
        self.draft = ""
        self._begin()

    def _begin(self) -> None:
        self._boundary = False
        self._fence = ""
        self._signal = ""
        self._block: _Block | None = None
        self._partial = ""
        self.question = ""

    def boundary(self, text: str = "") -> None:
        self._boundary = True
        self._last = ""
        self._markers.boundary(text)

    def feed(self, text: str) -> None:
        self._markers.feed(text)
        if self._boundary and text.strip():
            self._begin()
        if not (self._block or self._fence or self._partial) and not _may_matter(text):
            if text.strip():
                self._last = ""  # the last line has no signal
            return
        for line in text.split("\n"):
            self._join(line)

    def _join(self, line: str) -> None:
        """Joins lines that a wrapper broke in the middle of a signal."""
        whole, self._partial = self._partial + line, ""
        if len(whole) <= _MAX_PARTIAL and self._block is None and _PARTIAL.search(whole):
            self._partial = whole
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
        if block.size < _MAX_BLOCK:
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

    def claim(self, *, structured: bool, prompt: str | None = None) -> Claim:
        """In plain output only the last line counts, because earlier lines may not be the agent's own."""
        signal = self._signal if structured else self._last
        if signal and not structured and repeats(prompt, self._markers.before_last_line, _written(signal)):
            return Claim(Signal.NONE, f"the last lines of the output, with {_written(signal)}, repeat the prompt")
        if self.question:
            return Claim(Signal.QUESTION, f"the agent asks: {question_text(self.question)}")
        if signal in _FAILED:
            return Claim(_FAILED[signal], f"the agent reports a failure ({_written(signal)})")
        if signal in _DONE or (signal in _DONE_WITHOUT_PLAN and self._objection is None):
            return self._checked(Claim(Signal.COMPLETE, f"the agent printed {_written(signal)}"))
        claim = self._markers.claim(structured=structured, prompt=prompt)
        if claim.signal is not Signal.NONE:
            return self._checked(claim)
        if self.draft:
            return Claim(Signal.QUESTION, "the agent drafted a plan and waits for a person to accept or change it")
        if signal:
            return Claim(Signal.NONE, f"the agent printed {_written(signal)}, which does not complete a plan")
        if self._mentioned:
            return Claim(Signal.NONE, f"the agent mentioned {self._mentioned}, but not as a signal in its last message")
        return Claim(Signal.NONE, "the agent did not print <<<RALPHEX:ALL_TASKS_DONE>>>")

    def _checked(self, claim: Claim) -> Claim:
        """Rejects a claim of completion if there is an objection."""
        objection = self._objection() if self._objection and claim.signal is Signal.COMPLETE else None
        return claim if objection is None else Claim(Signal.NONE, f"{claim.why}, but {objection}")


def _may_matter(text: str) -> bool:
    """A quick test for text that may contain a signal, the start of one, or a code fence."""
    return "<<<" in text or "```" in text or "~~~" in text or text.rstrip().endswith("<")


def signal_of(line: str) -> str:
    """The signal that is alone on this line, or unquoted at its start or end. Empty if there is none."""
    known = [m for m in _SIGNAL.finditer(line) if m.group(1) in _DONE | _DONE_WITHOUT_PLAN | _FAILED.keys()]
    for found in reversed(known):
        before, after = line[: found.start()].strip(_DECORATION), line[found.end() :].strip(_DECORATION)
        if not before and not after:
            return found.group(1)
        if line[found.end() : found.end() + 1].isalnum():
            after = ""  # the next message, which some wrappers append without a newline
        quoted = line[: found.start()].endswith(("`", '"', "'")) or line[found.end() :].startswith(("`", '"', "'"))
        if not quoted and (not before or not after):
            return found.group(1)
    return ""


def question_text(question: str) -> str:
    """The question and its options from the JSON of a QUESTION block. Anything else is returned unchanged."""
    try:
        value = decode_json(question)
    except (ValueError, RecursionError):
        return question[:500]
    if not isinstance(value, dict) or not isinstance(value.get("question"), str):
        return question[:500]
    options = value.get("options")
    choices = [str(o) for o in options] if isinstance(options, list) else []
    text: str = value["question"]
    return text + (f" ({' / '.join(choices)})" if choices else "")


def _written(name: str) -> str:
    return f"<<<RALPHEX:{name}>>>"
