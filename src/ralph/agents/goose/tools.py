"""Goose's tool calls: `toolRequest` and `toolResponse` blocks."""

from __future__ import annotations

from typing import Any

from ralph.agents.goose.words import is_refusal
from ralph.transcripts import meta
from ralph.transcripts.events import ToolStatus, TranscriptEvent
from ralph.transcripts.json_lines import get_dict, get_int, get_list, get_str
from ralph.transcripts.tool_calls import ToolCalls, output_text


def start_call(calls: ToolCalls, block: dict[str, Any]) -> list[TranscriptEvent]:
    call, request = get_str(block, "id"), get_dict(block, "toolCall")
    if call is None:
        return [meta.unknown(block)]
    request = get_dict(request, "value") or request
    return calls.start(call, get_str(request, "name") or "tool", get_dict(request, "arguments") or None)


def end_call(calls: ToolCalls, block: dict[str, Any]) -> list[TranscriptEvent]:
    call, result = get_str(block, "id"), get_dict(block, "toolResult")
    if call is None:
        return [meta.unknown(block)]
    value, error = result.get("value"), result.get("error")
    if isinstance(value, list):  # older releases: the content alone
        value = {"content": value}
    output = _output(value) or get_str(error, "message") or output_text(error)
    structured = get_dict(value, "structuredContent")
    if not structured and is_refusal(output):
        return calls.end(call, output, ToolStatus.FAIL, refusal=output)
    failed = isinstance(value, dict) and value.get("isError") is True
    if failed or result.get("status") == "error" or get_int(structured, "exit_code") not in (None, 0):
        return calls.end(call, output, ToolStatus.FAIL)
    return calls.end(call, output, ToolStatus.OK if result.get("status") == "success" else ToolStatus.UNKNOWN)


def _output(value: Any) -> str:
    if isinstance(value, str):
        return value
    texts = (get_str(b, "text") or get_str(get_dict(b, "resource"), "text") for b in get_list(value, "content"))
    return "\n".join(filter(None, texts))
