"""Tool calls in the schema of Claude Code: exactly one start and one end each, whatever the lines repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from ralph.transcripts.events import ToolCall, ToolEnd, ToolOutput, ToolRef, ToolResult, ToolStart, ToolStatus
from ralph.transcripts.json_lines import get_str
from ralph.transcripts.recent import RecentCalls

if TYPE_CHECKING:
    from ralph.transcripts.events import TranscriptEvent

Events: TypeAlias = "list[TranscriptEvent]"
#: An enum's members are slow to look up.
OK, FAIL = ToolStatus.OK, ToolStatus.FAIL


class ToolCalls:
    def __init__(self) -> None:
        self._calls = RecentCalls()

    def start(self, block: dict[str, Any]) -> list[TranscriptEvent]:
        """From a `tool_use` block; nothing if this call is known already."""
        call = get_str(block, "id") or f"call-{self._calls.added + 1}"
        if call in self._calls:
            return []
        given = block.get("input")
        return [self._begin(call, get_str(block, "name") or "tool", given if isinstance(given, dict) else None)]

    def start_call(self, call: str, name: str, given: dict[str, Any] | None, events: list[TranscriptEvent]) -> None:
        """The same of what is known to be a call; an empty id or name is none."""
        if call and name:
            if call not in self._calls:
                self._calls.begin(call, name)
                events.append(ToolStart(ToolCall(call, name, given)))
        else:
            events += self.start({"id": call, "name": name, "input": given})

    def end(self, call: str | None, text: str, status: ToolStatus, duration_ms: int | None = None) -> Events:
        events: Events = []
        self.end_call(events, call, text, status, duration_ms)
        return events

    def end_call(
        self,
        events: Events,
        call: str | None,
        text: str,
        status: ToolStatus,
        duration_ms: int | None = None,
        called: str = "tool",
        given: dict[str, Any] | None = None,
    ) -> None:
        """`called` and `given` are for a call that begins only here."""
        calls = self._calls
        if call is None:
            call = calls.oldest() or f"call-{calls.added + 1}"
        name = calls.get(call)
        if name is None:
            if call in calls:
                return
            name = called
            calls.begin(call, name)
            events.append(ToolStart(ToolCall(call, name, given)))
        calls[call] = None
        if text:
            events.append(ToolOutput(ToolRef(call, name), text))
        events.append(ToolEnd(ToolResult(call, status, duration_ms, name)))

    def _begin(self, call: str, name: str, given: dict[str, Any] | None) -> ToolStart:
        self._calls.begin(call, name)
        return ToolStart(ToolCall(call, name, given))


def text_of(content: Any) -> str:
    """The text of a block, of a list of blocks, or of a plain string."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        if len(content) == 1 and type(content[0]) is dict and type(text := content[0].get("text")) is str:
            return text
        return "\n".join(part for part in map(text_of, content) if part)
    if isinstance(content, dict):
        text = get_str(content, "text", "content", "output")
        if text is None and isinstance(content.get("content"), list):
            return text_of(content["content"])
        if text is None and content.get("type") not in (None, "text"):
            return f"[{content['type']}]"
        return text or ""
    return ""
