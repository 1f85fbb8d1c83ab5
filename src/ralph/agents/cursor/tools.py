"""Tool calls as Cursor writes them: `tool_call: {shellToolCall: {args, result: {success: {…}}}}`."""

from __future__ import annotations

from typing import Any

import msgspec

from ralph.transcripts.events import ToolStatus, decode_json
from ralph.transcripts.json_lines import get_count, get_dict, get_int, get_str

_SUFFIX = "ToolCall"
_DURATIONS = ("executionTime", "localExecutionTimeMs", "durationMs")
_TEXTS = ("content", "output", "diffString", "error", "errorMessage", "message", "reason")
_REFUSED = frozenset({"rejected", "permissionDenied", "denied"})


class Call(msgspec.Struct, frozen=True):
    name: str
    args: dict[str, Any] | None
    #: whether there is a result
    ended: bool = False
    status: ToolStatus = ToolStatus.UNKNOWN
    output: str = ""
    duration_ms: int | None = None
    #: what Cursor refused to do, if anything
    refused: str | None = None


def read_call(tool_call: dict[str, Any]) -> Call:
    """A key that ends in `ToolCall` names the kind of tool; other tools come as `function`."""
    for key, body in tool_call.items():
        if key.endswith(_SUFFIX) and isinstance(body, dict):
            return _read(key.removesuffix(_SUFFIX), body.get("args"), body.get("result"))
    function = get_dict(tool_call, "function")
    result = function.get("result", tool_call.get("result"))
    return _read(get_str(function, "name"), function.get("arguments"), result)


def _read(name: str | None, args: Any, result: Any) -> Call:
    args = _decode_args(args)
    if name == "mcp":
        name = get_str(args, "toolName", "name") or name
    call = Call(name or "tool", args)
    if isinstance(result, str):
        return msgspec.structs.replace(call, ended=True, status=ToolStatus.OK, output=result)
    return _with_outcome(call, result) if isinstance(result, dict) else call


def _with_outcome(call: Call, result: dict[str, Any]) -> Call:
    """A result has one key for its outcome (success, rejected, spawnError, …), and maybe flags such as isBackground."""
    objects = (key for key, value in result.items() if isinstance(value, dict))
    outcome = "success" if "success" in result else next(objects, None)
    if outcome is None:
        return call
    details = result[outcome]
    if not isinstance(details, dict):
        output = details if isinstance(details, str) else ""
        return msgspec.structs.replace(call, ended=True, status=ToolStatus.OK, output=output)
    failed = outcome != "success" or get_int(details, "exitCode")
    return Call(
        call.name,
        call.args,
        ended=True,
        status=ToolStatus.FAIL if failed else ToolStatus.OK,
        output=_output(details),
        duration_ms=get_count(details, *_DURATIONS),
        refused=(get_str(details, "command", "path") or call.name) if outcome in _REFUSED else None,
    )


def _output(details: dict[str, Any]) -> str:
    streams = [text for key in ("stdout", "stderr") if isinstance(text := details.get(key), str)]
    if streams:
        return "".join(streams)
    text = get_str(details, *_TEXTS)
    if text is None and details:
        return msgspec.json.encode(details).decode()
    return text or ""


def _decode_args(value: Any) -> dict[str, Any] | None:
    if isinstance(value, str):
        try:
            value = decode_json(value)
        except (ValueError, RecursionError):
            return {"arguments": value}
    return value if isinstance(value, dict) else None
