"""Goose's tool calls: `toolRequest` and `toolResponse` blocks."""

from __future__ import annotations

from typing import Any

import msgspec

from ralph.transcripts import meta
from ralph.transcripts._goose_words import is_refusal
from ralph.transcripts._json import get_dict, get_int, get_list, get_str
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
from ralph.transcripts.meta import ErrorClass


class GooseTools:
    def __init__(self) -> None:
        self._open: dict[str, str] = {}
        self._finished: set[str] = set()
        self._refused: dict[str, str] = {}  # tools that goose did not run, and its words

    def refused(self) -> tuple[str, ErrorClass] | None:
        """A tool that was refused, and did not run later either."""
        for name in self._refused:
            return f"goose did not run the tool {name}", ErrorClass.PERMISSION_DENIED
        return None

    def start(self, block: dict[str, Any]) -> list[TranscriptEvent]:
        call = get_str(block, "id")
        if call is None:
            return [meta.unknown(block)]
        if call in self._open or call in self._finished:
            return []
        told = get_dict(block, "toolCall")
        value = get_dict(told, "value") or told
        name = get_str(value, "name") or "tool"
        self._open[call] = name
        return [ToolStart(ToolCall(call, name, get_dict(value, "arguments") or None))]

    def end(self, block: dict[str, Any]) -> list[TranscriptEvent]:
        call = get_str(block, "id")
        if call is None:
            return [meta.unknown(block)]
        if call in self._finished:
            return []
        self._finished.add(call)
        events: list[TranscriptEvent] = []
        name = self._open.pop(call, None)
        if name is None:
            name = "tool"
            events.append(ToolStart(ToolCall(call, name)))
        told = get_dict(block, "toolResult")
        value = told.get("value")
        if isinstance(value, list):  # older releases: the content alone
            value = {"content": value}
        output = _output(value) or _as_text(told.get("error"))
        if output:
            events.append(ToolOutput(ToolRef(call, name), output))
        status = self._status(told, value, output, name)
        events.append(ToolEnd(ToolResult(call, status, None, name)))
        return events

    def _status(self, told: dict[str, Any], value: Any, output: str, name: str) -> ToolStatus:
        structured = get_dict(value, "structuredContent")
        if not structured and is_refusal(output):  # a command's output has structure
            self._refused[name] = output
            return ToolStatus.FAIL
        if told.get("status") == "error" or (isinstance(value, dict) and value.get("isError") is True):
            return ToolStatus.FAIL
        if get_int(structured, "exit_code") not in (None, 0):
            return ToolStatus.FAIL
        if told.get("status") != "success":
            return ToolStatus.UNKNOWN
        self._refused.pop(name, None)
        return ToolStatus.OK


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
