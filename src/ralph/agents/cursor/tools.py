"""Tool calls as Cursor writes them: `tool_call: {shellToolCall: {args, result: {success: {…}}}}`."""

from __future__ import annotations

from typing import Any

import msgspec

from ralph.transcripts.events import ToolStatus, decode_json
from ralph.transcripts.json_lines import get_count, get_dict, get_int, get_str

_SUFFIX = "ToolCall"
_DURATIONS = ("executionTime", "localExecutionTimeMs", "durationMs")
_DURATIONS_SET = frozenset(_DURATIONS)
_TEXTS = ("content", "output", "diffString", "error", "errorMessage", "message", "reason")
_TEXTS_SET = frozenset(_TEXTS)
#: Only to be quick: any other kind is read from its key.
_USUAL = {name + _SUFFIX: name for name in ("shell", "read", "write", "edit", "grep", "glob", "ls", "delete")}
_REFUSED = frozenset({"rejected", "permissionDenied", "denied"})

_encode = msgspec.json.Encoder().encode

#: An enum's members are slow to look up.
_OK, _FAIL = ToolStatus.OK, ToolStatus.FAIL


class Call(msgspec.Struct, frozen=True, gc=False):
    name: str
    args: dict[str, Any] | None
    #: whether there is a result
    ended: bool = False
    status: ToolStatus = ToolStatus.UNKNOWN
    output: str = ""
    duration_ms: int | None = None
    #: what was not allowed, if something was not
    refused: str | None = None


def read_call(tool_call: dict[str, Any]) -> Call:
    """Any single key that ends in `ToolCall` is a kind of tool; others come as `function`."""
    for key, body in tool_call.items():
        if key.endswith(_SUFFIX) and isinstance(body, dict):
            args = _args(body.get("args"))
            return read_result(tool_name(key, args) or "tool", args, body.get("result"))
    function = get_dict(tool_call, "function")
    args = _args(function.get("arguments"))
    name = get_str(function, "name") or "tool"
    return read_result(
        _mcp_name(args) if name == "mcp" else name, args, function.get("result", tool_call.get("result"))
    )


def tool_name(key: str, args: dict[str, Any] | None) -> str | None:
    """The kind of tool that a key tells, or of an MCP server the tool's name; None if it is no such key."""
    usual = _USUAL.get(key)
    if usual is not None:
        return usual
    if not key.endswith(_SUFFIX):
        return None
    name = key[: -len(_SUFFIX)]
    return _mcp_name(args) if name == "mcp" else name or "tool"


def _mcp_name(args: dict[str, Any] | None) -> str:
    return get_str(args, "toolName", "name") or "mcp"


def read_result(name: str, args: dict[str, Any] | None, result: Any) -> Call:
    """A call with its result, whose one key tells the outcome: success, rejected, spawnError and others."""
    if not isinstance(result, dict):
        return Call(name, args, True, _OK, result) if isinstance(result, str) else Call(name, args)
    outcome: str | None = "success"
    inner = result.get("success")
    if inner is None and "success" not in result:
        # `result` may also hold flags beside the outcome (isBackground).
        outcome = next((key for key, told in result.items() if isinstance(told, dict)), None)
        if outcome is None:
            return Call(name, args)
        inner = result[outcome]
    if not isinstance(inner, dict):
        return Call(name, args, True, _OK, inner if isinstance(inner, str) else "")
    status, output, duration = read_success(inner)
    refused = (get_str(inner, "command", "path") or name) if outcome in _REFUSED else None
    return Call(name, args, True, status if outcome == "success" else _FAIL, output, duration, refused)


def read_success(inner: dict[str, Any]) -> tuple[ToolStatus, str, int | None]:
    """How a call that is told as a success ended, what it printed, and how long it took."""
    code = inner.get("exitCode")
    duration = None if _DURATIONS_SET.isdisjoint(inner) else get_count(inner, *_DURATIONS)
    return _FAIL if code and get_int(inner, "exitCode") else _OK, _output(inner), duration


def _output(details: dict[str, Any]) -> str:
    out, err = details.get("stdout"), details.get("stderr")
    if isinstance(out, str):
        return out + err if isinstance(err, str) else out
    if isinstance(err, str):
        return err
    for key in () if _TEXTS_SET.isdisjoint(details) else _TEXTS:
        if key in details and isinstance(text := details[key], str) and text:
            return text
    return _encode(details).decode() if details else ""


def _args(value: Any) -> dict[str, Any] | None:
    if isinstance(value, str):
        try:
            value = decode_json(value)
        except (ValueError, RecursionError):
            return {"arguments": value}
    return value if isinstance(value, dict) else None
