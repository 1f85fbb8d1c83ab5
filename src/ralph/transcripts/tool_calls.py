"""Tool calls by id, for agents that report a call more than once or end one that never started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ralph.transcripts.events import ToolCall, ToolEnd, ToolOutput, ToolRef, ToolResult, ToolStart, ToolStatus
from ralph.transcripts.recent import Recent, RecentCalls

if TYPE_CHECKING:
    from ralph.transcripts.events import TranscriptEvent


class ToolCalls:
    """Gives each call exactly one start and one end, and remembers which tools were refused."""

    def __init__(self) -> None:
        self._calls = RecentCalls()
        #: The refusal of each tool that was not allowed to run and has not succeeded since.
        self.refused = Recent[str, str]()

    def name(self, call: str) -> str | None:
        """The tool of a call that is still running."""
        return self._calls.get(call)

    def start(self, call: str, name: str, arguments: dict[str, Any] | None) -> list[TranscriptEvent]:
        if call in self._calls:
            return []
        self._calls.begin(call, name)
        return [ToolStart(ToolCall(call, name, arguments))]

    def end(
        self, call: str, output: str, status: ToolStatus, *, duration_ms: int | None = None, refusal: str = ""
    ) -> list[TranscriptEvent]:
        """The end of a call, with a start if none came before. `refusal` says why the tool was not run."""
        events = self.start(call, "tool", None)
        name = self._calls[call]
        if name is None:
            return []  # it has ended already
        self._calls[call] = None
        if refusal:
            self.refused[name] = refusal
        elif status is ToolStatus.OK:
            self.refused.pop(name, None)
        if output:
            events.append(ToolOutput(ToolRef(call, name), output))
        events.append(ToolEnd(ToolResult(call, status, duration_ms, name)))
        return events


def output_text(value: Any) -> str:
    """A tool's output as text: a string as it is, anything else as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return msgspec.json.encode(value).decode()
