"""Kimi's tool calls. No field of its JSON tells a failure: kimi-cli and Kimi Code write it into the result."""

from __future__ import annotations

import re
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
    decode_json,
)
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.recent import Recent, RecentCalls

_SHELLS = frozenset({"Bash", "Shell", "PowerShell"})
#: The last line of a shell's result in Kimi Code.
_FAILED = re.compile(r"Command (?:failed with exit code: -?\d+|killed|was |timed out)|Session closed$")
#: The first words of a result, whole, where a tool was not run.
_NOT_RUN = re.compile(
    r'Tool "([^"]+)" was (?:denied|not run)\b|(?:<system>ERROR: )?The tool call is rejected by the user'
)
_MAYBE_NOT_RUN = ('Tool "', "The tool call is rejected", "<system>ERROR: The tool call is rejected")
#: How the last line of one that failed begins.
_FAILING = ("C", "S")
_DONE = re.compile(r"(?:Wrote|Appended|Replaced|Edited|Updated|Created) ")

_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


class KimiTools:
    def __init__(self) -> None:
        self._calls = RecentCalls()
        self._refused = Recent[str, str]()

    def refused(self) -> tuple[str, ErrorClass] | None:
        """A tool that was not allowed, and did not run later either."""
        for message in self._refused.values():
            return message, ErrorClass.PERMISSION_DENIED
        return None

    def start(self, events: list[TranscriptEvent], call: str, name: str, arguments: Any) -> None:
        if call not in self._calls:
            self._calls.begin(call, name)
            events.append(ToolStart(ToolCall(call, name, _input(arguments))))

    def end(
        self, events: list[TranscriptEvent], call: str, output: str, status: ToolStatus | None, code: bool = False
    ) -> None:
        """`status` if it is told; `code` says that the result is in Kimi Code's way."""
        calls = self._calls
        name = calls.get(call)
        if name is None:
            if call in calls:
                return
            name = "tool"
            calls.begin(call, name)
            events.append(ToolStart(ToolCall(call, name)))
        calls[call] = None
        if output:
            events.append(ToolOutput(ToolRef(call, name), output))
            if output[0] in "T<" and self._is_refusal(name, output):
                status = ToolStatus.FAIL
        if status is None:
            status = _status(name, output, code)
        if self._refused and status is ToolStatus.OK:
            self._refused.pop(name, None)
        events.append(ToolEnd(ToolResult(call, status, None, name)))

    def _is_refusal(self, name: str, output: str) -> bool:
        refusal = _NOT_RUN.match(output) if output.startswith(_MAYBE_NOT_RUN) else None
        if refusal is None or refusal.group(1) not in (None, name):
            return False
        self._refused[name] = output.partition("\n")[0][:300]
        return True


def _status(name: str, output: str, code: bool) -> ToolStatus:
    if output[:8] == "<system>":
        return ToolStatus.FAIL if output.startswith("ERROR", 8) else ToolStatus.OK
    if name in _SHELLS:
        # Kimi Code, also before it told its version. From the end: a search would try every line of a long output.
        tail = output[-500:].rstrip()
        last = tail.rfind("\n") + 1
        if tail[last : last + 1] not in _FAILING:
            return ToolStatus.OK
        return ToolStatus.OK if _FAILED.match(tail, last) is None else ToolStatus.FAIL
    # Other tools of Kimi Code fail in words of their own.
    return ToolStatus.OK if not code or _DONE.match(output) else ToolStatus.UNKNOWN


def _input(arguments: Any) -> dict[str, Any] | None:
    if isinstance(arguments, str):
        try:
            return _decode_object(arguments)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            pass  # no object, or half a surrogate pair in it
        try:
            arguments = decode_json(arguments)
        except (ValueError, RecursionError):
            return {"arguments": arguments}
    return arguments if isinstance(arguments, dict) else None
