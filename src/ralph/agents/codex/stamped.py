"""Codex's human transcript up to 0.44: all of it on stdout, each event with its time before it."""

from __future__ import annotations

import re

from ralph.agents.codex.blocks import RULE, Status, duration_ms, read_status
from ralph.agents.codex.errors import classify_message, limit, retry
from ralph.transcripts import meta
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
    Usage,
    UsageEvent,
)
from ralph.transcripts.json_lines import strip_escapes
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.numbers import whole

_VERSION = re.compile(r"OpenAI Codex v0\.(\d{1,4})\.")
#: From here on `tokens used` counts up over the run; before it each call had its own.
_CUMULATIVE = 30
_STAMP = re.compile(r"\[\d{4}-\d\d-\d\dT[\d:.]+Z?\] ")
_TOKENS = re.compile(r"tokens used: ([\d,]+)\Z")
_PATCH = re.compile(r"apply_patch auto_approved=\w+:\Z")
_PATCH_END = re.compile(r"apply_patch\(.*\) exited (-?\d+)(?: in (\S.*))?:\Z")
_MCP = re.compile(r"tool (\S+)\(")
_MCP_END = re.compile(r"(\S+)\(.*\) (success|failed)(?: in (\S.*))?:\Z")


class StampedTranscript:
    """Roles are certain here: no line begins with a time that the CLI did not write, unless a tool imitates it."""

    def __init__(self) -> None:
        self._tag = Tag.SYS
        self._model: str | None = None
        self._rules = 0
        self._command: list[str] = []
        self._ending: list[str] = []
        self._running: list[tuple[str, str]] = []
        self._current: tuple[str, str, Status] | None = None
        self._output: list[str] = []
        self._count = 0
        self._tokens = 0
        self._per_call = False
        self._start_of_block = False

    def feed(self, line: str) -> list[TranscriptEvent]:
        bare = strip_escapes(line)
        found = _STAMP.match(bare)
        if found:
            return self._event(line, bare[found.end() :])
        if self._command:
            self._command.append(bare)
            return self._maybe_started()
        if self._ending:
            self._ending.append(bare)
            return self._maybe_ended()
        if self._current is not None:
            self._output.append(line)
            return []
        if self._rules < 2:
            if bare == RULE:
                self._rules += 1
            elif bare.startswith("model: "):
                self._model = bare.removeprefix("model: ")
        if self._start_of_block and not bare.strip():
            return []
        self._start_of_block = False
        return [Text(self._tag, line)]

    def flush(self) -> list[TranscriptEvent]:
        events = self._close()
        if self._running:  # its launcher exits with 0 when a signal ends it
            events.append(meta.error("the output ends in the middle of a tool call", ErrorClass.FAILED))
        return events

    def _event(self, line: str, bare: str) -> list[TranscriptEvent]:
        events = self._close()
        self._start_of_block = True
        match bare:
            case "codex":
                self._tag = Tag.AI
                return events
            case "thinking":
                self._tag = Tag.THINK
                return events
            case "User instructions:":
                self._tag = Tag.PROMPT
                return events
        self._tag = Tag.SYS
        if bare.startswith("exec "):
            self._command = [bare.removeprefix("exec ")]
            return events + self._maybe_started()
        tokens = _TOKENS.match(bare)
        if tokens:
            return events + self._used(whole(tokens.group(1).replace(",", "") or "0"))
        if self._running and self._tool_ends(bare):
            return events
        version = _VERSION.match(bare)
        if version:
            self._per_call = whole(version.group(1)) < _CUMULATIVE
        if bare.startswith("ERROR: "):
            message = bare.removeprefix("ERROR: ")
            kind = classify_message(message)
            return [*events, Text(Tag.SYS, line), *limit(message, kind), meta.error(message, kind)]
        again = retry(bare)
        if again is not None:
            return [*events, Text(Tag.SYS, line), again]
        if _PATCH.match(bare):
            started, call = self._new("apply_patch", None)
            self._running.append(call)
            return [*events, started]
        mcp = _MCP.match(bare)
        if mcp:
            started, call = self._new(mcp.group(1), None)
            self._running.append(call)
            return [*events, started]
        if self._running and self._running[-1][1] == "shell":
            self._ending = [bare]
            return events + self._maybe_ended()
        return [*events, Text(Tag.SYS, line)]

    def _new(self, name: str, given: dict[str, str] | None) -> tuple[ToolStart, tuple[str, str]]:
        self._count += 1
        call = (f"call_{self._count}", name)
        return ToolStart(ToolCall(call[0], name, dict(given) if given else None)), call

    def _maybe_started(self) -> list[TranscriptEvent]:
        """A command goes on over lines until it has its directory."""
        text, found, directory = "\n".join(self._command).rpartition(" in ")
        if not found or "\n" in directory:
            return []
        self._command = []
        started, call = self._new("shell", {"command": text, "cwd": directory})
        self._running.append(call)
        return [started]

    def _maybe_ended(self) -> list[TranscriptEvent]:
        told = read_status("\n".join(self._ending)) if self._ending[-1].endswith(":") else None
        if told is None:
            return []
        self._ending = []
        call = next((c for c in self._running if c[1] == "shell"), None)
        if call is not None:
            self._running.remove(call)
            self._current = (*call, told[1])
        return []

    def _tool_ends(self, bare: str) -> bool:
        """Patches and MCP tools, whose results name them. A patch's text has come as SYS before it."""
        found = _PATCH_END.match(bare)
        if found:
            status = ToolStatus.FAIL if whole(found.group(1)) else ToolStatus.OK
            return self._ends("apply_patch", Status(status, duration_ms(found.group(2))))
        found = _MCP_END.match(bare)
        if found:
            status = ToolStatus.OK if found.group(2) == "success" else ToolStatus.FAIL
            return self._ends(found.group(1), Status(status, duration_ms(found.group(3))))
        return False

    def _ends(self, name: str, status: Status) -> bool:
        call = next((c for c in self._running if c[1] == name), None)
        if call is None:
            return False
        self._running.remove(call)
        self._current = (*call, status)
        return True

    def _used(self, total: int) -> list[TranscriptEvent]:
        """It counts up over the run (without cached input), and may be said twice; up to 0.29 it is of one call."""
        more, self._tokens = total if self._per_call else total - self._tokens, total
        return [UsageEvent(Usage(total_tokens=more, model=self._model))] if more > 0 else []

    def _close(self) -> list[TranscriptEvent]:
        """The next event is there: the output before it is whole."""
        events: list[TranscriptEvent] = []
        for lines in (self._command, self._ending):
            if lines:
                events.append(Text(Tag.SYS, "\n".join(lines)))
        self._command, self._ending = [], []
        if self._current is not None:
            key, name, ended = self._current
            output = "\n".join(self._output).strip("\n")
            if output:
                events.append(ToolOutput(ToolRef(key, name), output))
            events.append(ToolEnd(ToolResult(key, ended.status, ended.duration_ms, name)))
            self._current, self._output = None, []
        return events
