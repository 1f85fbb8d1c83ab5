"""Tool calls: exactly one start and one end for each, even if the transcript repeats or omits lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ralph.transcripts.events import ToolCall, ToolEnd, ToolOutput, ToolRef, ToolResult, ToolStart, ToolStatus
from ralph.transcripts.json_lines import get_str
from ralph.transcripts.recent import RecentCalls

if TYPE_CHECKING:
    from ralph.transcripts.events import TranscriptEvent


class ToolCalls:
    def __init__(self) -> None:
        self._calls = RecentCalls()

    def start(self, call: str | None, name: str | None, arguments: Any = None) -> list[TranscriptEvent]:
        """Start a call. A call that has already started yields no event; a call without an id gets one."""
        call = call or self._new_id()
        if call in self._calls:
            return []
        name = name or "tool"
        self._calls.begin(call, name)
        return [ToolStart(ToolCall(call, name, arguments if isinstance(arguments, dict) else None))]

    def start_block(self, block: dict[str, Any]) -> list[TranscriptEvent]:
        """Start the call that a `tool_use` block describes."""
        return self.start(get_str(block, "id"), get_str(block, "name"), block.get("input"))

    def end(
        self,
        call: str | None,
        output: str,
        status: ToolStatus,
        duration_ms: int | None = None,
        *,
        name: str | None = None,
        arguments: Any = None,
    ) -> list[TranscriptEvent]:
        """End a call; without an id, the oldest open one. `name` and `arguments` describe a call that never started."""
        call = call or self._calls.oldest() or self._new_id()
        events = self.start(call, name, arguments)
        started_as = self._calls[call]
        if started_as is None:
            return []  # it has already ended
        self._calls[call] = None
        if output:
            events.append(ToolOutput(ToolRef(call, started_as), output))
        return [*events, ToolEnd(ToolResult(call, status, duration_ms, started_as))]

    def _new_id(self) -> str:
        return f"call-{self._calls.added + 1}"


def text_of(content: Any) -> str:
    """The text of a block, of a list of blocks, or of a plain string."""
    match content:
        case str():
            return content
        case list():
            return "\n".join([part for block in content if (part := text_of(block))])
        case dict():
            text = get_str(content, "text", "content", "output")
            if text is None and isinstance(content.get("content"), list):
                return text_of(content["content"])
            if text is None and content.get("type") not in (None, "text"):
                return f"[{content['type']}]"
            return text or ""
    return ""
