"""Kiro CLI (and Amazon Q before it): a human transcript on stdout, credits and errors on stderr.

There is no machine-readable format. The CLI puts a `> ` before each answer; tools have lines of their own.
"""

from __future__ import annotations

import re

from ralph.transcripts import deltas
from ralph.transcripts.base import Capabilities, TranscriptAdapter
from ralph.transcripts.classify import classify
from ralph.transcripts.errors import fatal_error
from ralph.transcripts.events import Tag, Text, ToolOutput, ToolRef, ToolStatus, TranscriptEvent
from ralph.transcripts.json_lines import strip_escapes
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.numbers import amount
from ralph.transcripts.tool_calls import ToolCalls

#: The prefix of an answer in colour; a model that quotes something does not colour it.
_COLOURED_PREFIX = re.compile(r"(?:\x1b\[[0-9;]*m)+> ")
_TOOL = re.compile(r"(?:\W*Using tool: ([\w@/.-]+)(?: \(trusted\))?.*|.*\(using tool: ([\w@/.-]+)(?:, [^()]*)?\))\s*\Z")
_TOOL_END = re.compile(r"\s*[-●•] (?:(Completed)|(?:Execution f|F)ailed) (?:in|after) (\d+(?:\.\d+)?) ?s:?\s*\Z")
#: Frames that a terminal draws over each other.
_SPINNER = re.compile(r"\r?[\u2800-\u28ff] Thinking\.\.\.[\s\x1b[0-9;]*?(?=\r|\Z|>|\x1b)")
_CREDITS = re.compile(r"\W*Credits: [\d.]+\b.*\bTime: ")
_ERROR = re.compile(r"\s*(?:kiro-cli: )?error:? (.+)", re.IGNORECASE)
_LOGIN = re.compile(r"not logged in|log in with|authenticat|invalid api key|KIRO_API_KEY", re.IGNORECASE)
_APPROVAL = re.compile(r"tool approval|approv\w* .*--no-interactive|--trust-(?:all-)?tools", re.IGNORECASE)


class KiroAdapter(TranscriptAdapter):
    name = "kiro"
    capabilities = Capabilities(supports_roles=True, supports_tool_events=True)

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._prefixed = True  # the next line with words may begin with a `> ` that has no colour
        self._tools = ToolCalls()
        self._count = 0
        self._tool: str | None = None  # the call that is running
        self._output: list[str] = []
        self._output_size = 0
        self._coloured = False
        self._maybe_answer: int | None = None  # where in the output of the tool an answer may begin
        self._error: str | None = None
        self._done = False

    def feed(self, line: str) -> list[TranscriptEvent]:
        if not line.isprintable():
            coloured = _SPINNER.sub("", line).lstrip("\r") if "Thinking..." in line else line
            line = strip_escapes(coloured)
            if line.startswith("> ") and _COLOURED_PREFIX.match(coloured):
                self._coloured = True
                return self._answer(line)
        if self._tool is not None and line.startswith("> "):
            return self._tool_line(self._tool, line)  # only colour tells an answer from a quotation
        if "sing tool: " in line and (found := _TOOL.match(line)):
            return self._end(ToolStatus.UNKNOWN) + self._start(found.group(1) or found.group(2), line.strip())
        if self._tool is not None:
            return self._tool_line(self._tool, line)
        if self._prefixed and line.strip():
            return self._answer(line)
        return [Text(Tag.AI, line)]

    def feed_stderr(self, line: str) -> list[TranscriptEvent]:
        bare = strip_escapes(line)
        if _CREDITS.match(bare):
            self._done = True
        elif found := _ERROR.match(bare):
            self._error = found.group(1).strip()
        return [Text(Tag.SYS, bare)]

    def flush(self) -> list[TranscriptEvent]:
        events = self._end(ToolStatus.UNKNOWN)
        # Every successful run ends with its credits, so an error before them was not fatal.
        if self._error is not None and not self._done:
            events += fatal_error(self._error, _classify(self._error))
        self._error = None
        return events

    def _answer(self, line: str) -> list[TranscriptEvent]:
        """The first line of an answer; a tool that was running has ended."""
        events = self._end(ToolStatus.UNKNOWN)
        self._prefixed = False
        return [*events, Text(Tag.AI, line.removeprefix("> "))]

    def _start(self, name: str, line: str) -> list[TranscriptEvent]:
        self._count += 1
        self._tool = f"call_{self._count}"
        return self._tools.start(self._tool, name, {"line": line})

    def _tool_line(self, call: str, line: str) -> list[TranscriptEvent]:
        if found := _TOOL_END.match(line):
            status = ToolStatus.OK if found.group(1) else ToolStatus.FAIL
            return self._end(status, int(amount(found.group(2)) * 1000))
        if line.startswith("> ") and not self._coloured and self._maybe_answer is None:
            self._maybe_answer = len(self._output)
        self._output.append(line)
        self._output_size += len(line) + deltas.FRAGMENT
        if self._output_size <= deltas.MAX_HELD:
            return []
        return [ToolOutput(ToolRef(call, self._tools.name(call)), self._take_output())]

    def _end(self, status: ToolStatus, took: int | None = None) -> list[TranscriptEvent]:
        """The end of the tool that is running. If it was not reported, an answer may have begun in its output."""
        if self._tool is None:
            return []
        words: list[str] = []
        if status is ToolStatus.UNKNOWN and self._maybe_answer is not None and not self._coloured:
            words = self._output[self._maybe_answer :]
            del self._output[self._maybe_answer :]
        events = self._tools.end(self._tool, self._take_output(), status, duration_ms=took)
        self._tool, self._prefixed = None, True
        # The prefix stays: this may still be a quotation, and a marker in a quotation does not count.
        return [*events, *(Text(Tag.AI, line) for line in words)]

    def _take_output(self) -> str:
        output, self._output, self._output_size = "\n".join(self._output), [], 0
        self._maybe_answer = None
        return output.strip("\n") if output.strip() else ""


def _classify(message: str) -> ErrorClass:
    if _APPROVAL.search(message):
        return ErrorClass.PERMISSION_DENIED
    return ErrorClass.AUTH if _LOGIN.search(message) else classify(message)


ADAPTER = KiroAdapter
