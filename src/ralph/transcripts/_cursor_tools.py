"""Tool calls as Cursor writes them: `tool_call: {shellToolCall: {args, result: {success: {…}}}}`."""

from __future__ import annotations

from typing import Any

import msgspec

from ralph.transcripts._json import get_dict, get_int, get_str
from ralph.transcripts.events import ToolStatus, decode_json

_SUFFIX = "ToolCall"
_REFUSED = frozenset({"rejected", "permissionDenied", "denied"})


class Call(msgspec.Struct, frozen=True):
    name: str
    args: dict[str, Any] | None
    #: the one key of `result`: success, rejected, spawnError and others
    outcome: str | None
    details: dict[str, Any]
    inner: Any

    @property
    def refused(self) -> bool:
        return self.outcome in _REFUSED

    @property
    def status(self) -> ToolStatus:
        if self.outcome is None:
            return ToolStatus.UNKNOWN
        if self.outcome != "success" or (self.details.get("exitCode") and get_int(self.details, "exitCode")):
            return ToolStatus.FAIL
        return ToolStatus.OK

    @property
    def duration_ms(self) -> int | None:
        return get_int(self.details, "executionTime", "localExecutionTimeMs", "durationMs")

    @property
    def output(self) -> str:
        if isinstance(self.inner, str):
            return self.inner
        details = self.details
        out, err = details.get("stdout"), details.get("stderr")
        if isinstance(out, str):
            return out + err if isinstance(err, str) else out
        if isinstance(err, str):
            return err
        text = get_str(details, "content", "output", "diffString", "error", "errorMessage", "message", "reason")
        return text or (msgspec.json.encode(details).decode() if details else "")


def read_call(tool_call: dict[str, Any]) -> Call:
    """Any single key that ends in `ToolCall` is a kind of tool; others come as `function`."""
    for key, body in tool_call.items():
        if key.endswith(_SUFFIX) and isinstance(body, dict):
            return _call(key.removesuffix(_SUFFIX) or "tool", _args(body.get("args")), body.get("result"))
    function = get_dict(tool_call, "function")
    result = function.get("result", tool_call.get("result"))
    return _call(get_str(function, "name") or "tool", _args(function.get("arguments")), result)


def read_body(key: str, args: dict[str, Any] | None, result: dict[str, Any] | None) -> Call | None:
    """The same of a body whose types are known; None if the key is not a kind of tool's."""
    return _call(key.removesuffix(_SUFFIX) or "tool", args, result) if key.endswith(_SUFFIX) else None


def _call(name: str, args: dict[str, Any] | None, result: Any) -> Call:
    if name == "mcp" and args is not None:
        name = get_str(args, "toolName", "name") or name
    if not isinstance(result, dict):
        return Call(name, args, "success" if isinstance(result, str) else None, {}, result)
    # `result` may also hold flags beside the outcome (isBackground).
    outcome = "success" if "success" in result else next((k for k, v in result.items() if isinstance(v, dict)), None)
    inner = result.get(outcome) if outcome else None
    return Call(name, args, outcome, inner if isinstance(inner, dict) else {}, inner)


def _args(value: Any) -> dict[str, Any] | None:
    if isinstance(value, str):
        try:
            value = decode_json(value)
        except (ValueError, RecursionError):
            return {"arguments": value}
    return value if isinstance(value, dict) else None
