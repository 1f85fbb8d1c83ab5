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
from ralph.transcripts.recent import Recent, RecentKeys

_SHELLS = frozenset({"Bash", "Shell", "PowerShell"})
#: The last line of a shell's result in Kimi Code.
_FAILED = re.compile(r"Command (?:failed with exit code: -?\d+|killed|was |timed out)|Session closed$")
#: The first words of a result, whole, where a tool was not run.
_NOT_RUN = re.compile(
    r'Tool "([^"]+)" was (?:denied|not run)\b|(?:<system>ERROR: )?The tool call is rejected by the user'
)
_MAYBE_NOT_RUN = ('Tool "', "The tool call is rejected", "<system>ERROR: The tool call is rejected")
_DONE = re.compile(r"(?:Wrote|Appended|Replaced|Edited|Updated|Created) ")

_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


class KimiTools:
    def __init__(self) -> None:
        self.open = Recent[str, str]()
        self._finished = RecentKeys[str]()
        self._refused = Recent[str, str]()

    def refused(self) -> tuple[str, ErrorClass] | None:
        """A tool that was not allowed, and did not run later either."""
        for message in self._refused.values():
            return message, ErrorClass.PERMISSION_DENIED
        return None

    def start(self, events: list[TranscriptEvent], call: str, name: str, arguments: Any) -> None:
        if call not in self.open and call not in self._finished:
            self.open[call] = name
            events.append(ToolStart(ToolCall(call, name, _input(arguments))))

    def end(
        self, events: list[TranscriptEvent], call: str, output: str, status: ToolStatus | None, *, code: bool = False
    ) -> None:
        """`status` if it is told; `code` says that the result is in Kimi Code's way."""
        if call in self._finished:
            return
        self._finished.add(call)
        name = self.open.pop(call, None)
        if name is None:
            name = "tool"
            events.append(ToolStart(ToolCall(call, name)))
        if output:
            events.append(ToolOutput(ToolRef(call, name), output))
        maybe = output[:1] in ("T", "<") and output.startswith(_MAYBE_NOT_RUN)
        refusal = _NOT_RUN.match(output) if maybe else None
        if refusal is not None and refusal.group(1) in (None, name):
            self._refused[name] = output.partition("\n")[0][:300]
            status = ToolStatus.FAIL
        elif status is None:
            status = _status(name, output, code=code)
        if status is ToolStatus.OK and self._refused:
            self._refused.pop(name, None)
        events.append(ToolEnd(ToolResult(call, status, None, name)))


def _status(name: str, output: str, *, code: bool) -> ToolStatus:
    if output[:8] == "<system>":
        return ToolStatus.FAIL if output.startswith("ERROR", 8) else ToolStatus.OK
    if name in _SHELLS:
        # Kimi Code, also before it told its version. From the end: a search would try every line of a long output.
        tail = output[-500:]
        if "Command " not in tail and "Session closed" not in tail:
            return ToolStatus.OK
        tail = tail.rstrip()
        last = tail.rfind("\n") + 1
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
