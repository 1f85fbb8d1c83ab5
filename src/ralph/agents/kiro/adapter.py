"""Kiro CLI (and Amazon Q before it): a human transcript on stdout, credits and errors on stderr.

There is no machine format. Words begin with a `> ` that the CLI puts there; tools have lines of their own.
"""

from __future__ import annotations

import re

from ralph.transcripts import meta
from ralph.transcripts.base import Capabilities, TranscriptAdapter
from ralph.transcripts.classify import classify, retry_after
from ralph.transcripts.events import (
    Tag,
    Text,
    ToolCall,
    ToolEnd,
    ToolOutput,
    ToolRef,
    ToolResult,
    ToolStart,
    ToolStatus,
    TranscriptEvent,
)
from ralph.transcripts.json_lines import strip_escapes
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.numbers import amount

#: The prefix as the CLI colours it: no quotation of a model looks like that.
_COLOURED = re.compile(r"(?:\x1b\[[0-9;]*m)+> (?:\x1b\[[0-9;]*m)*")
_TOOL = re.compile(r"(?:\W*Using tool: ([\w@/.-]+)(?: \(trusted\))?.*|.*\(using tool: ([\w@/.-]+)(?:, [^()]*)?\))\s*\Z")
_TOOL_END = re.compile(r"\s*[-●•] (?:(Completed) in|Execution failed after|Failed (?:in|after)) ([\d.]+) ?s:?\s*\Z")
#: Frames that a terminal would have drawn over each other.
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
        self._begins = True
        self._count = 0
        self._tool: tuple[str, str] | None = None
        self._output: list[str] = []
        self._error: str | None = None
        self._done = False

    def feed(self, line: str) -> list[TranscriptEvent]:
        if self._tool is None and not self._begins and line.isprintable() and "sing tool: " not in line:
            return [Text(Tag.AI, line)]  # words among words, as most lines are
        if "Thinking..." in line:
            line = _SPINNER.sub("", line).lstrip("\r")
        coloured = _COLOURED.match(line) if "\x1b" in line else None
        bare = strip_escapes(line)
        if coloured or (self._tool is not None and bare.startswith("> ")):
            self._begins = True
            if self._tool is None:
                return self._words(bare)
            return [*self._end(ToolStatus.UNKNOWN, None), *self._words(bare)]
        found = _TOOL_END.match(bare) if self._tool is not None else None
        if found:
            status = ToolStatus.OK if found.group(1) else ToolStatus.FAIL
            return self._end(status, _milliseconds(found.group(2)))
        found = _TOOL.match(bare) if "sing tool: " in bare else None
        if found:
            events = self._end(ToolStatus.UNKNOWN, None)
            self._count += 1
            self._tool = (f"call_{self._count}", found.group(1) or found.group(2))
            return [*events, ToolStart(ToolCall(*self._tool, {"line": bare.strip()}))]
        if self._tool is not None:
            self._output.append(bare)
            return []
        return self._words(bare)

    def feed_stderr(self, line: str) -> list[TranscriptEvent]:
        bare = strip_escapes(line)
        if _CREDITS.match(bare):
            self._done = True
        elif found := _ERROR.match(bare):
            self._error = found.group(1).strip()
        return [Text(Tag.SYS, bare)]

    def flush(self) -> list[TranscriptEvent]:
        events = self._end(ToolStatus.UNKNOWN, None)
        # The credits stand at the end of every run that worked: an error before them was got over.
        if self._error is not None and not self._done:
            kind = _classify(self._error)
            if kind in (ErrorClass.RATE_LIMITED, ErrorClass.QUOTA) and (seconds := retry_after(self._error)):
                events.append(meta.rate_limit(retry_after=seconds, message=self._error))
            events.append(meta.error(self._error, kind))
        self._error = None
        return events

    def _words(self, bare: str) -> list[TranscriptEvent]:
        if self._begins and bare.strip():
            self._begins = False
            bare = bare.removeprefix("> ")
        return [Text(Tag.AI, bare)]

    def _end(self, status: ToolStatus, took: int | None) -> list[TranscriptEvent]:
        if self._tool is None:
            return []
        (key, name), lines = self._tool, self._output
        self._tool, self._output, self._begins = None, [], True
        output = "\n".join(lines).strip("\n")
        shown: list[TranscriptEvent] = [ToolOutput(ToolRef(key, name), output)] if output.strip() else []
        return [*shown, ToolEnd(ToolResult(key, status, took, name))]


def _classify(message: str) -> ErrorClass:
    if _APPROVAL.search(message):
        return ErrorClass.PERMISSION_DENIED
    return ErrorClass.AUTH if _LOGIN.search(message) else classify(message)


def _milliseconds(seconds: str) -> int | None:
    try:
        return int(amount(seconds) * 1000)
    except ValueError:
        return None


ADAPTER = KiroAdapter
