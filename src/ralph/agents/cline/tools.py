"""How Cline's tools report their results: text, an object, or an object for each of several commands."""

from __future__ import annotations

import re
from typing import Any

from ralph.transcripts.events import ToolStatus
from ralph.transcripts.json_lines import get_str
from ralph.transcripts.tool_calls import output_text

_REFUSED = re.compile(r'Tool "[^"]*" requires approval|Command not executed: |.*\bblocked in plan mode')


def tool_status(output: Any, error: Any) -> ToolStatus:
    """A call that runs several commands fails if one of them does. Most tools mark only a failure."""
    if error:
        return ToolStatus.FAIL
    parts = output if isinstance(output, list) else [output]
    marks = [part["success"] for part in parts if isinstance(part, dict) and "success" in part]
    if False in marks:
        return ToolStatus.FAIL
    return ToolStatus.OK if output is not None and all(mark is True for mark in marks) else ToolStatus.UNKNOWN


def tool_output(output: Any, error: Any) -> str:
    """What a tool printed, or its error. The outputs of several commands follow the command that was run."""
    return _output(output) or (error if isinstance(error, str) else "")


def tool_refusal(output: Any, error: Any) -> str:
    """The CLI's message instead of a result, if the tool was not allowed to run."""
    message = get_str(output, "error") or (error if isinstance(error, str) else "")
    return message if _REFUSED.match(message) else ""


def _output(output: Any) -> str:
    match output:
        case dict():
            return _part(output)
        case [part]:
            return _output(part)
        case [_, *_] if all(isinstance(part, dict) for part in output):
            return "\n".join(f"$ {get_str(part, 'query') or ''}\n{_part(part)}" for part in output)
        case []:
            return ""
    return output_text(output)


def _part(part: dict[str, Any]) -> str:
    result = part.get("result")
    if isinstance(result, str):
        return result or get_str(part, "error") or ""
    return get_str(part, "error", "text") or output_text(part)
