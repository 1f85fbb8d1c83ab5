"""Copilot's tool calls: a start, pieces of a command's output, an end that calls a failed command a success."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import msgspec

from ralph.agents.copilot.lines import Data, string
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
from ralph.transcripts.recent import Recent

#: The CLI's own last line of a command's output; where there is no field for it, this has the exit code.
_EXIT = re.compile(r"<(?:shellId: \S+ )?(?:completed|exited) with exit code (-?\d+)>\s*$")
_REFUSED = ("denied", "rejected")


class _Call(msgspec.Struct):
    name: str
    started: Any
    held: str = ""
    streamed: bool = False


class ToolCalls:
    def __init__(self) -> None:
        self._open = Recent[str, _Call]()
        self._count = 0
        #: what was said of the calls that were refused, by tool: one that was allowed after all is not missed
        self.refused = Recent[str, str]()

    def start(self, data: Data, timestamp: Any) -> list[TranscriptEvent]:
        call = string(data.tool_call_id) or self._next()
        return [] if call in self._open else [self._begin(call, data, timestamp)]

    def output(self, data: Data) -> list[TranscriptEvent]:
        """A piece of a running command's output, shown line by line."""
        call, text = string(data.tool_call_id), string(data.text)
        open_call = self._open.get(call)
        if not text or open_call is None:
            return []
        open_call.streamed = True
        whole, newline, rest = (open_call.held + text).rpartition("\n")
        open_call.held = rest
        return [ToolOutput(ToolRef(call, open_call.name), whole)] if newline else []

    def complete(self, data: Data, timestamp: Any) -> list[TranscriptEvent]:
        call = string(data.tool_call_id) or next(iter(self._open), None) or self._next()
        events: list[TranscriptEvent] = [] if call in self._open else [self._begin(call, data, None)]
        open_call = self._open.pop(call)
        name = open_call.name
        content = _content(data)
        output = open_call.held if open_call.streamed else content
        if output:
            events.append(ToolOutput(ToolRef(call, name), output.removesuffix("\n")))
        status = _status(data, content)
        if data.error and get_str(data.error, "code") in _REFUSED:
            self.refused[name] = content or f"{name} was refused"
        elif self.refused and status is ToolStatus.OK:
            self.refused.pop(name, None)
        events.append(ToolEnd(ToolResult(call, status, _milliseconds(open_call.started, timestamp), name)))
        return events

    def _begin(self, call: str, data: Data, timestamp: Any) -> ToolStart:
        name = string(data.tool_name) or "tool"
        self._open[call] = _Call(name, timestamp)
        return ToolStart(ToolCall(call, name, data.arguments if type(data.arguments) is dict else None))

    def _next(self) -> str:
        self._count += 1
        return f"call-{self._count}"


def _content(data: Data) -> str:
    for value in (data.error, data.result):
        found = string(value) or get_str(value, "message", "content", "detailedContent")
        if found:
            return found
    return ""


def _status(data: Data, content: str) -> ToolStatus:
    success = data.success
    if success is False or (success is None and data.error):
        return ToolStatus.FAIL
    code = get_count(data.shell_execution, "exitCode")
    if code is None:
        found = _EXIT.search(content, max(0, len(content) - 200))
        code = whole(found.group(1)) if found else None
    if code is not None:
        return ToolStatus.OK if code == 0 else ToolStatus.FAIL
    return ToolStatus.OK if success is True else ToolStatus.UNKNOWN


def _milliseconds(start: Any, end: Any) -> int | None:
    if not isinstance(start, str) or not isinstance(end, str):
        return None
    try:
        return max(0, round((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds() * 1000))
    except (ValueError, TypeError):
        return None
