"""Goose's tool calls: `toolRequest` and `toolResponse` blocks."""

from __future__ import annotations

from typing import Any

import msgspec

from ralph.agents.goose.words import is_refusal
from ralph.transcripts import meta
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
from ralph.transcripts.json_lines import get_dict, get_int, get_list, get_str
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.recent import Recent, RecentKeys

#: An enum's members are slow to look up.
_OK, _FAIL = ToolStatus.OK, ToolStatus.FAIL


class GooseTools:
    def __init__(self) -> None:
        self._open = Recent[str, str]()
        self._finished = RecentKeys[str]()
        self._refused = Recent[str, str]()  # tools that goose did not run, and its words

    def refused(self) -> tuple[str, ErrorClass] | None:
        """A tool that was refused, and did not run later either."""
        for name in self._refused:
            return f"goose did not run the tool {name}", ErrorClass.PERMISSION_DENIED
        return None

    def start(self, block: dict[str, Any]) -> list[TranscriptEvent]:
        call = get_str(block, "id")
        if call is None:
            return [meta.unknown(block)]
        told = get_dict(block, "toolCall")
        value = get_dict(told, "value") or told
        return self.start_call(call, get_str(value, "name") or "tool", get_dict(value, "arguments"))

    def start_call(self, call: str, name: str, arguments: dict[str, Any]) -> list[TranscriptEvent]:
        if call in self._open or call in self._finished:
            return []
        self._open[call] = name
        return [ToolStart(ToolCall(call, name, arguments or None))]

    def end(self, block: dict[str, Any]) -> list[TranscriptEvent]:
        call = get_str(block, "id")
        if call is None:
            return [meta.unknown(block)]
        told = get_dict(block, "toolResult")
        value = told.get("value")
        if isinstance(value, list):  # older releases: the content alone
            value = {"content": value}
        structured = get_dict(value, "structuredContent")
        failed = (
            told.get("status") == "error"
            or (isinstance(value, dict) and value.get("isError") is True)
            or get_int(structured, "exit_code") not in (None, 0)
        )
        output = _output(value) or _as_text(told.get("error"))
        return self.end_call(
            call, output, failed=failed, known=told.get("status") == "success", structured=bool(structured)
        )

    def end_call(self, call: str, output: str, *, failed: bool, known: bool, structured: bool) -> list[TranscriptEvent]:
        """`failed` and `known` (as a success) are what the line tells; a refusal has no structure."""
        if call in self._finished:
            return []
        self._finished.add(call)
        events: list[TranscriptEvent] = []
        name = self._open.pop(call, None)
        if name is None:
            name = "tool"
            events.append(ToolStart(ToolCall(call, name)))
        if output:
            events.append(ToolOutput(ToolRef(call, name), output))
        if not structured and is_refusal(output):
            self._refused[name] = output
            status = _FAIL
        elif failed:
            status = _FAIL
        elif known:
            status = _OK
            self._refused.pop(name, None)
        else:
            status = ToolStatus.UNKNOWN
        events.append(ToolEnd(ToolResult(call, status, None, name)))
        return events


def _output(value: Any) -> str:
    if isinstance(value, str):
        return value
    parts = []
    for block in get_list(value, "content"):
        text = get_str(block, "text") or get_str(get_dict(block, "resource"), "text")
        if text:
            parts.append(text)
    return "\n".join(parts)


def _as_text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return get_str(value, "message") or msgspec.json.encode(value).decode()
