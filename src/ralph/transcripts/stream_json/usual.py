"""The short way for the usual lines of Claude Code's schema; all that is not usual is read as an object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from ralph.transcripts.events import ToolStatus, TranscriptEvent
from ralph.transcripts.json_lines import JsonAdapter, Usual
from ralph.transcripts.stream_json.lines import (
    Assistant,
    Delta,
    Details,
    Event,
    Line,
    StreamEvent,
    System,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUse,
    User,
    decode_line,
)
from ralph.transcripts.stream_json.stream import MessageStream
from ralph.transcripts.stream_json.tools import ToolCalls, text_of
from ralph.transcripts.stream_json.usage import RunUsage

if TYPE_CHECKING:
    from ralph.transcripts.meta import ErrorClass

Events: TypeAlias = list[TranscriptEvent]

#: The model that Claude names when it speaks in the agent's place.
SYNTHETIC = "<synthetic>"
#: Of `system` lines: those that say nothing.
QUIET_SUBTYPES = frozenset({"status", "thinking_tokens", "session_state_changed", "files_persisted"})


class UsualLines(JsonAdapter):
    """What a run of this schema keeps in mind, and the lines that nearly all of it consists of."""

    #: types of streaming events that say nothing
    quiet_events: frozenset[str] = frozenset({"ping"})

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self.tools = ToolCalls()
        self.usage = RunUsage()
        self.stream = MessageStream(self.tools, self.usage)
        self.session: str | None = None
        self.model: str | None = None
        #: the CLI's last word about an error or a retry, if nothing good has followed it
        self.trouble: tuple[str, ErrorClass] | None = None

    def words(self, text: str, value: dict[str, Any], *, synthetic: bool, nested: bool) -> Events:
        """What an assistant's message says, or the CLI in its place (`synthetic`), or a subagent (`nested`)."""
        raise NotImplementedError

    def is_plain(self, text: str) -> bool:
        """Whether `words` would have nothing to say about the text of an agent's message, but show it."""
        raise NotImplementedError

    def told(self, text: str, *, nested: bool) -> Events:
        """What anybody but the agent says to it."""
        raise NotImplementedError

    def tool_status(self, text: str, *, failed: bool) -> tuple[ToolStatus, str]:
        """How a call ended, and its output; `failed` is what the CLI says."""
        raise NotImplementedError

    def usual(self) -> Usual | None:
        return None if self.session is None else (decode_line, self._usual)

    def _usual(self, line: Line, events: Events) -> bool:
        # Not by isinstance, which is slow to say no.
        if type(line) is StreamEvent:
            event = line.event
            if event.type != "content_block_delta":
                return self._usual_event(event, events)
            return event.delta is not None and self._usual_delta(event.delta, events)
        if type(line) is Assistant:
            return self._usual_message(line, events)
        if type(line) is User:
            self._usual_told(line, events)
            return True
        return type(line) is System and line.subtype in QUIET_SUBTYPES

    def _usual_event(self, event: Event, events: Events) -> bool:
        """False for an event that must be read as an object."""
        kind = event.type
        if kind in ("content_block_stop", "message_stop"):
            more = self.stream.end_block()
        elif kind == "content_block_start" and event.content_block is not None:
            more = self.stream.start_block(event.content_block)
        elif kind == "message_start" and event.message is not None:
            message = event.message
            if message.model:
                self.stream.model = message.model
            self.usage.raw_message(message.id, message.usage)
            more = self.stream.restart()
        elif kind == "message_delta":
            usage = bytes(event.usage)
            if usage[:1] != b"{" or len(usage) < 5:
                return False  # no counts, or none in it
            self.usage.delta(usage)
            return True
        else:
            return kind in self.quiet_events
        if more:
            self.trouble = None
            events += more
        return True

    def _usual_delta(self, delta: Delta, events: Events) -> bool:
        """A fragment; False for one that must be read as an object."""
        kind = delta.type
        stream = self.stream
        if kind == "text_delta":
            text = delta.text
            if text[:1] == "[" and self.is_cli_error(text):
                return True  # the CLI's; it comes again as a message
            if stream.thoughts.parts:
                events += stream.thoughts.stop()
            stream.words.add(text, events)
        elif kind == "thinking_delta":
            if stream.words.parts:
                events += stream.words.stop()
            stream.thoughts.add(delta.thinking, events)
        elif kind == "input_json_delta":
            stream.input(delta.partial_json)
        elif kind != "signature_delta":
            return False
        self.trouble = None
        return True

    def is_cli_error(self, fragment: str) -> bool:
        """Whether a fragment that begins with a bracket is an error that the CLI streams as if it were words."""
        return False

    def _usual_message(self, line: Assistant, events: Events) -> bool:
        message = line.message
        if message.model == SYNTHETIC or line.is_api_error_message:
            return False
        self.trouble = None
        self.usage.raw_message(message.id, message.usage)
        if message.model is not None:
            self.model = message.model
        stream = self.stream
        for block in message.content:
            if type(block) is TextBlock:
                text = block.text
                if text:
                    if self.is_plain(text):
                        stream.words.add_full(text, events)
                    else:
                        events += self.words(text, {}, synthetic=False, nested=False)
            elif type(block) is ThinkingBlock:
                if block.thinking:
                    stream.thoughts.add_full(block.thinking, events)
            elif type(block) is ToolUse:
                if stream.words.parts or stream.thoughts.parts:
                    events += stream.close()
                self.tools.start_call(block.id, block.name, block.input, events)
        return True

    def _usual_told(self, line: User, events: Events) -> None:
        blocks = line.message.content
        told = line.tool_use_result
        details = told if type(told) is Details and len(blocks) == 1 else None
        for block in blocks:
            if type(block) is TextBlock:
                events += self.told(block.text, nested=False)
            if type(block) is not ToolResultBlock:
                continue
            failed = block.is_error is True or (details is not None and details.interrupted)
            content = block.content
            text = content if type(content) is str else text_of(content)
            status, text = self.tool_status(text, failed=failed)
            duration = None if details is None else details.milliseconds
            self.tools.end_call(events, block.tool_use_id or None, text, status, duration)
