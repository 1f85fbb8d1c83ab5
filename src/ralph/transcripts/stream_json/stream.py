"""The provider's streaming events: fragments of text, thinking and tool calls, and the token counts of a message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ralph.transcripts import deltas, meta
from ralph.transcripts.events import Tag, decode_json
from ralph.transcripts.json_lines import get_dict, get_str
from ralph.transcripts.repeats import Streamed

if TYPE_CHECKING:
    from ralph.transcripts.events import TranscriptEvent
    from ralph.transcripts.stream_json.tools import ToolCalls
    from ralph.transcripts.stream_json.usage import RunUsage

TOOL_USES = ("tool_use", "server_tool_use", "mcp_tool_use")


class MessageStream:
    """One message at a time. Its full copy may come before, between or after the events that end it."""

    def __init__(self, tools: ToolCalls, usage: RunUsage) -> None:
        self.words = Streamed(Tag.AI)
        self.thoughts = Streamed(Tag.THINK)
        self.model: str | None = None
        #: the id of the message
        self._message: str | None = None
        self._tools = tools
        self._usage = usage
        self._tool: dict[str, Any] | None = None
        self._input: list[str] = []
        self._input_size = 0

    def feed(self, event: dict[str, Any]) -> list[TranscriptEvent]:
        match event.get("type"):
            case "content_block_delta":
                return self._delta(event)
            case "content_block_start":
                return self._start_block(get_dict(event, "content_block"))
            case "content_block_stop" | "message_stop":
                return self.close() + self._tool_call()
            case "message_start":
                return self._start_message(get_dict(event, "message"))
            case "message_delta":
                return self._usage.delta(get_dict(event, "usage"), self._message, self.model)
            case "ping":
                return []
        return [meta.unknown(event)]

    def text(self, fragment: str) -> list[TranscriptEvent]:
        return self.thoughts.stop() + self.words.fragment(fragment)

    def thought(self, fragment: str) -> list[TranscriptEvent]:
        return self.words.stop() + self.thoughts.fragment(fragment)

    def close(self) -> list[TranscriptEvent]:
        """End the text or thinking block that is being streamed."""
        return self.thoughts.stop() + self.words.stop()

    def _start_message(self, message: dict[str, Any]) -> list[TranscriptEvent]:
        self.model = get_str(message, "model") or self.model
        self._message = get_str(message, "id")
        return self.thoughts.restart() + self.words.restart() + self._usage.message(message, self.model)

    def _delta(self, event: dict[str, Any]) -> list[TranscriptEvent]:
        delta = event.get("delta")
        if not isinstance(delta, dict):
            return [meta.unknown(event)]
        match delta.get("type") or ("text_delta" if "text" in delta else None):
            case "text_delta":
                return self.text(get_str(delta, "text") or "")
            case "thinking_delta":
                return self.thought(get_str(delta, "thinking") or "")
            case "input_json_delta":
                self._add_input(get_str(delta, "partial_json") or "")
                return []
            case "signature_delta" | "citations_delta":
                return []
        return [meta.unknown(delta)]

    def _start_block(self, block: dict[str, Any]) -> list[TranscriptEvent]:
        events = self.close()
        kind = block.get("type")
        if kind == "text":
            return events + self.words.fragment(get_str(block, "text") or "")
        if kind == "thinking":
            return events + self.thoughts.fragment(get_str(block, "thinking") or "")
        if kind in TOOL_USES:
            self._tool, self._input, self._input_size = block, [], 0
        return events

    def _add_input(self, fragment: str) -> None:
        if self._tool is not None and self._input_size <= deltas.MAX_HELD:  # an oversized input is left incomplete
            self._input.append(fragment)
            self._input_size += len(fragment)

    def _tool_call(self) -> list[TranscriptEvent]:
        """The call whose input was streamed as JSON. Nothing if its full copy has already come."""
        block, self._tool = self._tool, None
        if block is None:
            return []
        arguments = block.get("input")
        if streamed := "".join(self._input):
            try:
                arguments = decode_json(streamed)
            except (ValueError, RecursionError):
                arguments = None
        return self._tools.start(get_str(block, "id"), get_str(block, "name"), arguments)
