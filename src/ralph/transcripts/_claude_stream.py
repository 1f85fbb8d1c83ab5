"""The provider's streaming events: fragments of words, thoughts and tool calls, and the counts of a message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ralph.transcripts import meta
from ralph.transcripts._json import get_dict, get_str
from ralph.transcripts._said import Streamed
from ralph.transcripts.events import Tag, decode_json

if TYPE_CHECKING:
    from ralph.transcripts._claude_tools import ToolCalls
    from ralph.transcripts._claude_usage import RunUsage
    from ralph.transcripts.events import TranscriptEvent


class MessageStream:
    """One message at a time. Its full copy may come before, between or after the events that end it."""

    def __init__(self, tools: ToolCalls, usage: RunUsage) -> None:
        self.words = Streamed(Tag.AI)
        self.thoughts = Streamed(Tag.THINK)
        self.model: str | None = None
        self._tools = tools
        self._usage = usage
        self._tool: dict[str, Any] | None = None
        self._input: list[str] = []

    def feed(self, event: dict[str, Any]) -> list[TranscriptEvent]:
        match event.get("type"):
            case "content_block_delta":
                return self.delta(event)
            case "content_block_start":
                return self._block(get_dict(event, "content_block"))
            case "content_block_stop":
                return self.close() + self._tool_call()
            case "message_start":
                message = get_dict(event, "message")
                self.model = get_str(message, "model") or self.model
                self._usage.message(message)
                return self.thoughts.restart() + self.words.restart()
            case "message_delta":
                usage = get_dict(event, "usage")
                if usage:
                    self._usage.delta(usage)
                return []
            case "message_stop":
                return self.close() + self._tool_call()
            case "ping":
                return []
        return [meta.unknown(event)]

    def close(self) -> list[TranscriptEvent]:
        """What came in fragments is over."""
        if self.thoughts.parts or self.words.parts:
            return self.thoughts.stop() + self.words.stop()
        return []

    def delta(self, event: dict[str, Any]) -> list[TranscriptEvent]:
        """A fragment: nearly all events of a stream are one."""
        delta = event.get("delta")
        if type(delta) is not dict:
            return [meta.unknown(event)]
        kind = delta.get("type")
        if kind == "text_delta" or (kind is None and "text" in delta):
            return self._fragment(self.words, self.thoughts, delta.get("text"))
        if kind == "thinking_delta":
            return self._fragment(self.thoughts, self.words, delta.get("thinking"))
        if kind == "input_json_delta":
            self._input.append(get_str(delta, "partial_json") or "")
            return []
        return [] if kind in ("signature_delta", "citations_delta") else [meta.unknown(delta)]

    def _fragment(self, new: Streamed, other: Streamed, text: Any) -> list[TranscriptEvent]:
        fragment = text if type(text) is str else ""
        return other.stop() + new.fragment(fragment) if other.parts else new.fragment(fragment)

    def _block(self, block: dict[str, Any]) -> list[TranscriptEvent]:
        events = self.close()
        match block.get("type"):
            case "text":
                events += self.words.fragment(get_str(block, "text") or "")
            case "thinking":
                events += self.thoughts.fragment(get_str(block, "thinking") or "")
            case "tool_use" | "server_tool_use" | "mcp_tool_use":
                self._tool, self._input = block, []
        return events

    def _tool_call(self) -> list[TranscriptEvent]:
        """A call whose full copy has not come: its input was streamed as JSON."""
        block, self._tool = self._tool, None
        if block is None:
            return []
        try:
            given = decode_json("".join(self._input)) if any(self._input) else block.get("input")
        except (ValueError, RecursionError):
            given = None
        return self._tools.start({**block, "input": given})
