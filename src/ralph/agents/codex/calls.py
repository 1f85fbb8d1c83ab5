"""Tool calls and the events that they become."""

from __future__ import annotations

from typing import Any

import msgspec

from ralph.transcripts.events import ToolCall, ToolEnd, ToolOutput, ToolRef, ToolResult, ToolStart, ToolStatus

#: Far more than run at the same time.
_MOST_OPEN = 256


class Call(msgspec.Struct, frozen=True):
    id: str
    name: str

    def start(self, given: dict[str, Any] | None = None) -> ToolStart:
        return ToolStart(ToolCall(self.id, self.name, given))

    def output(self, text: str) -> ToolOutput:
        return ToolOutput(ToolRef(self.id, self.name), text)

    def end(self, status: ToolStatus, duration_ms: int | None = None) -> ToolEnd:
        return ToolEnd(ToolResult(self.id, status, duration_ms, self.name))


class OpenCalls:
    """The calls of a text transcript that have not ended. The text gives them no ids, so they are numbered."""

    def __init__(self) -> None:
        self._open: list[Call] = []
        self._count = 0

    def __bool__(self) -> bool:
        return bool(self._open)

    def new(self, name: str) -> Call:
        """The next call. It is open only after `open`: some are reported when they have ended."""
        self._count += 1
        return Call(f"call_{self._count}", name)

    def open(self, call: Call) -> None:
        self._open.append(call)
        del self._open[:-_MOST_OPEN]

    def close(self, name: str) -> Call | None:
        """Ends the oldest open call of this name: Codex does not say which of several parallel ones it was."""
        for at, call in enumerate(self._open):
            if call.name == name:
                return self._open.pop(at)
        return None

    def latest(self) -> Call | None:
        return self._open[-1] if self._open else None
