"""Kimi's tool calls. No field of its JSON tells a failure: kimi-cli and Kimi Code write it into the result."""

from __future__ import annotations

import re
from typing import Any

from ralph.transcripts.events import (
    ToolCall,
    ToolEnd,
    ToolOutput,
    ToolRef,
    ToolResult,
    ToolStart,
    ToolStatus,
    TranscriptEvent,
    decode_json,
)
from ralph.transcripts.meta import ErrorClass

_SHELLS = frozenset({"Bash", "Shell", "PowerShell"})
#: The last line of a shell's result in Kimi Code.
_FAILED = re.compile(
    r"(?:^|\n)(?:Command (?:failed with exit code: -?\d+|killed|was |timed out)[^\n]*|Session closed)\s*$"
)
#: The first words of a result, whole, where a tool was not run.
_NOT_RUN = re.compile(
    r'Tool "([^"]+)" was (?:denied|not run)\b|(?:<system>ERROR: )?The tool call is rejected by the user'
)
_DONE = re.compile(r"(?:Wrote|Appended|Replaced|Edited|Updated|Created) ")


class KimiTools:
    def __init__(self) -> None:
        self.open: dict[str, str] = {}
        self._finished: set[str] = set()
        self._refused: dict[str, str] = {}

    def refused(self) -> tuple[str, ErrorClass] | None:
        """A tool that was not allowed, and did not run later either."""
        for message in self._refused.values():
            return message, ErrorClass.PERMISSION_DENIED
        return None

    def start(self, call: str, name: str, arguments: Any) -> list[TranscriptEvent]:
        if call in self.open or call in self._finished:
            return []
        self.open[call] = name
        return [ToolStart(ToolCall(call, name, _input(arguments)))]

    def end(self, call: str, output: str, status: ToolStatus | None, *, code: bool = False) -> list[TranscriptEvent]:
        """`status` if it is told; `code` says that the result is in Kimi Code's way."""
        if call in self._finished:
            return []
        self._finished.add(call)
        events: list[TranscriptEvent] = []
        name = self.open.pop(call, None)
        if name is None:
            name = "tool"
            events.append(ToolStart(ToolCall(call, name)))
        if output:
            events.append(ToolOutput(ToolRef(call, name), output))
        refusal = _NOT_RUN.match(output)
        if refusal is not None and refusal.group(1) in (None, name):
            self._refused[name] = output.partition("\n")[0][:300]
            status = ToolStatus.FAIL
        elif status is None:
            status = _status(name, output, code=code)
        if status is ToolStatus.OK:
            self._refused.pop(name, None)
        return [*events, ToolEnd(ToolResult(call, status, None, name))]


def _status(name: str, output: str, *, code: bool) -> ToolStatus:
    if output.startswith("<system>ERROR"):
        return ToolStatus.FAIL
    if not code or output.startswith("<system>"):
        return ToolStatus.OK
    if name in _SHELLS:
        return ToolStatus.FAIL if _FAILED.search(output[-500:]) else ToolStatus.OK
    # Other tools of Kimi Code fail in words of their own.
    return ToolStatus.OK if _DONE.match(output) else ToolStatus.UNKNOWN


def _input(arguments: Any) -> dict[str, Any] | None:
    if isinstance(arguments, str):
        try:
            arguments = decode_json(arguments)
        except (ValueError, RecursionError):
            return {"arguments": arguments}
    return arguments if isinstance(arguments, dict) else None
