"""Copilot's tool calls: a start, pieces of a command's output, and an end that calls a failed command a success."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import msgspec

from ralph.transcripts.events import (
    ToolCall,
    ToolEnd,
    ToolOutput,
    ToolRef,
    ToolResult,
    ToolStart,
    ToolStatus,
    TranscriptEvent,
)
from ralph.transcripts.json_lines import get_count, get_str
from ralph.transcripts.numbers import whole
from ralph.transcripts.recent import Recent, RecentKeys

#: The CLI's own last line of a command's output, for versions that have no field for the exit code.
_EXIT = re.compile(r"<(?:shellId: \S+ )?(?:completed|exited) with exit code (-?\d+)>\s*$")


class _Call(msgspec.Struct):
    name: str
    started: str | None
    held: str = ""
    streamed: bool = False


class CopilotTools:
    def __init__(self) -> None:
        self._open = Recent[str, _Call]()
        self._ended = RecentKeys[str]()
        self._count = 0
        #: the refusal of each tool that was not allowed to run and has not succeeded since
        self.refused = Recent[str, str]()

    def start(self, data: dict[str, Any], timestamp: str | None) -> list[TranscriptEvent]:
        call = get_str(data, "toolCallId") or self._next()
        return [] if call in self._open or call in self._ended else [self._begin(call, data, timestamp)]

    def output(self, data: dict[str, Any]) -> list[TranscriptEvent]:
        """A piece of a running command's output, shown line by line."""
        call, text = get_str(data, "toolCallId") or "", get_str(data, "text")
        open_call = self._open.get(call)
        if text is None or open_call is None:
            return []
        open_call.streamed = True
        lines, newline, open_call.held = (open_call.held + text).rpartition("\n")
        return [ToolOutput(ToolRef(call, open_call.name), lines)] if newline else []

    def complete(self, data: dict[str, Any], timestamp: str | None) -> list[TranscriptEvent]:
        call = get_str(data, "toolCallId") or next(iter(self._open), None) or self._next()
        if call in self._ended:
            return []
        events: list[TranscriptEvent] = [] if call in self._open else [self._begin(call, data, None)]
        open_call = self._open.pop(call)
        self._ended.add(call)
        name, content = open_call.name, _content(data)
        output = open_call.held if open_call.streamed else content
        if output:
            events.append(ToolOutput(ToolRef(call, name), output.removesuffix("\n")))
        status = _status(data, content)
        if get_str(data.get("error"), "code") in ("denied", "rejected"):
            self.refused[name] = content or f"{name} was refused"
        elif status is ToolStatus.OK:
            self.refused.pop(name, None)
        return [*events, ToolEnd(ToolResult(call, status, _milliseconds(open_call.started, timestamp), name))]

    def _begin(self, call: str, data: dict[str, Any], timestamp: str | None) -> ToolStart:
        name, arguments = get_str(data, "toolName") or "tool", data.get("arguments")
        self._open[call] = _Call(name, timestamp)
        return ToolStart(ToolCall(call, name, arguments if isinstance(arguments, dict) else None))

    def _next(self) -> str:
        self._count += 1
        return f"call-{self._count}"


def _content(data: dict[str, Any]) -> str:
    for key in ("error", "result"):
        found = get_str(data, key) or get_str(data.get(key), "message", "content", "detailedContent")
        if found:
            return found
    return ""


def _status(data: dict[str, Any], content: str) -> ToolStatus:
    success = data.get("success")
    if success is False or (success is None and data.get("error")):
        return ToolStatus.FAIL
    code = get_count(data.get("shellExecution"), "exitCode")
    if code is None:
        found = _EXIT.search(content, max(0, len(content) - 200))
        code = whole(found.group(1)) if found else None
    if code is not None:
        return ToolStatus.OK if code == 0 else ToolStatus.FAIL
    return ToolStatus.OK if success is True else ToolStatus.UNKNOWN


def _milliseconds(start: str | None, end: str | None) -> int | None:
    if start is None or end is None:
        return None
    try:
        return max(0, round((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds() * 1000))
    except (ValueError, TypeError):
        return None
