"""The provider's streaming events: fragments of words, thoughts and tool calls, and the counts of a message."""

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
        self._input_size = 0

    def feed(self, event: dict[str, Any]) -> list[TranscriptEvent]:
        match event.get("type"):
            case "content_block_delta":
                return self.delta(event)
            case "content_block_start":
                return self.start_block(get_dict(event, "content_block"))
            case "content_block_stop" | "message_stop":
                return self.end_block()
            case "message_start":
                return self.start_message(get_dict(event, "message"))
            case "message_delta":
                return self.count(get_dict(event, "usage"))
            case "ping":
                return []
        return [meta.unknown(event)]

    def start_message(self, message: dict[str, Any]) -> list[TranscriptEvent]:
        self.model = get_str(message, "model") or self.model
        self._usage.message(message)
        return self.restart()

    def restart(self) -> list[TranscriptEvent]:
        """A new message begins."""
        events = self.thoughts.restart()
        return events + self.words.restart() if events else self.words.restart()

    def count(self, usage: dict[str, Any]) -> list[TranscriptEvent]:
        if usage:
            self._usage.delta(usage)
        return []

    def end_block(self) -> list[TranscriptEvent]:
        """Of a block, or of the whole message."""
        events = self.close() if self.words.parts or self.thoughts.parts else []
        return events if self._tool is None else events + self._tool_call()

    def close(self) -> list[TranscriptEvent]:
        """What came in fragments is over."""
        events = self.thoughts.stop() if self.thoughts.parts else []
        if self.words.parts:
            events += self.words.stop()
        return events

    def delta(self, event: dict[str, Any]) -> list[TranscriptEvent]:
        """A fragment: nearly all events of a stream are one."""
        delta = event.get("delta")
        if type(delta) is not dict:
            return [meta.unknown(event)]
        kind = delta.get("type")
        if kind == "text_delta" or (kind is None and "text" in delta):
            return self.text(get_str(delta, "text") or "")
        if kind == "thinking_delta":
            return self.thought(get_str(delta, "thinking") or "")
        if kind == "input_json_delta":
            return self.input(get_str(delta, "partial_json") or "")
        return [] if kind in ("signature_delta", "citations_delta") else [meta.unknown(delta)]

    def text(self, fragment: str) -> list[TranscriptEvent]:
        if self.thoughts.parts:
            return self.thoughts.stop() + self.words.fragment(fragment)
        return self.words.fragment(fragment)

    def thought(self, fragment: str) -> list[TranscriptEvent]:
        if self.words.parts:
            return self.words.stop() + self.thoughts.fragment(fragment)
        return self.thoughts.fragment(fragment)

    def input(self, fragment: str) -> list[TranscriptEvent]:
        """Of a call, as JSON."""
        if self._tool is not None and self._input_size <= deltas.MAX_HELD:  # else it ends as no JSON
            self._input.append(fragment)
            self._input_size += len(fragment)
        return []

    def start_block(self, block: dict[str, Any]) -> list[TranscriptEvent]:
        events = self.close() if self.words.parts or self.thoughts.parts else []
        kind = block.get("type")
        if kind == "text":
            first = get_str(block, "text")
            return events + self.words.fragment(first) if first else events
        if kind == "thinking":
            first = get_str(block, "thinking")
            return events + self.thoughts.fragment(first) if first else events
        if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
            self._tool, self._input, self._input_size = block, [], 0
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
        call, name = block.get("id"), block.get("name")
        if type(call) is not str or type(name) is not str:
            return self._tools.start({**block, "input": given})
        events: list[TranscriptEvent] = []
        self._tools.start_call(call, name, given if isinstance(given, dict) else None, events)
        return events
