"""The short way for the usual lines of Claude Code's schema; all that is not usual is read as an object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from ralph.transcripts._claude_lines import (
    MARK,
    Assistant,
    Delta,
    Details,
    Event,
    StreamEvent,
    System,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUse,
    User,
    decode_line,
)
from ralph.transcripts._claude_stream import MessageStream
from ralph.transcripts._claude_tools import ToolCalls, text_of
from ralph.transcripts._claude_usage import RunUsage
from ralph.transcripts._json import JsonAdapter
from ralph.transcripts.events import ToolStatus, TranscriptEvent

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

    def __init__(self) -> None:
        super().__init__()
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

    def feed(self, line: str) -> Events:
        if self.session is not None and not self._document:
            try:
                known = decode_line(line) if line[MARK] == '"' else None
            except (msgspec.DecodeError, UnicodeEncodeError, RecursionError, IndexError):
                return super().feed(line)
            # Not by isinstance, which is slow to say no.
            if type(known) is StreamEvent:
                event = known.event
                delta = event.delta
                if event.type != "content_block_delta":
                    events = self._usual_event(event)
                else:
                    events = None if delta is None else self._usual_delta(delta)
            elif type(known) is Assistant:
                events = self._usual_message(known)
            elif type(known) is User:
                return self._usual_told(known)
            elif type(known) is System and known.subtype in QUIET_SUBTYPES:
                return []
            else:
                events = None
            if events is not None:
                return events
        return super().feed(line)

    def _usual_event(self, event: Event) -> Events | None:
        """None for an event that must be read as an object."""
        kind = event.type
        if kind in ("content_block_stop", "message_stop"):
            events = self.stream.end_block()
        elif kind == "content_block_start" and event.content_block is not None:
            events = self.stream.start_block(event.content_block)
        elif kind == "message_start" and event.message is not None:
            message = event.message
            if message.model:
                self.stream.model = message.model
            self.usage.raw_message(message.id, message.usage)
            events = self.stream.restart()
        elif kind == "message_delta":
            usage = bytes(event.usage)
            if usage[:1] != b"{" or len(usage) < 5:
                return None  # no counts, or none in it
            self.usage.delta(usage)
            return []
        else:
            return [] if kind in self.quiet_events else None
        if events:
            self.trouble = None
        return events

    def _usual_delta(self, delta: Delta) -> Events | None:
        """A fragment; None for one that must be read as an object."""
        kind = delta.type
        if kind == "text_delta":
            if delta.text[:1] == "[" and self.is_cli_error(delta.text):
                return []  # the CLI's; it comes again as a message
            self.trouble = None
            stream = self.stream
            return stream.text(delta.text) if stream.thoughts.parts else stream.words.fragment(delta.text)
        if kind == "thinking_delta":
            self.trouble = None
            stream = self.stream
            return stream.thought(delta.thinking) if stream.words.parts else stream.thoughts.fragment(delta.thinking)
        if kind == "input_json_delta":
            self.trouble = None
            return self.stream.input(delta.partial_json)
        if kind == "signature_delta":
            self.trouble = None
            return []
        return None

    def is_cli_error(self, fragment: str) -> bool:
        """Whether a fragment that begins with a bracket is an error that the CLI streams as if it were words."""
        return False

    def _usual_message(self, line: Assistant) -> Events | None:
        message = line.message
        if message.model == SYNTHETIC or line.is_api_error_message:
            return None
        self.trouble = None
        self.usage.raw_message(message.id, message.usage)
        if message.model is not None:
            self.model = message.model
        events: Events = []
        for block in message.content:
            if type(block) is TextBlock:
                text = block.text
                if text:
                    usual = self.is_plain(text)
                    events += (
                        self.stream.words.full(text) if usual else self.words(text, {}, synthetic=False, nested=False)
                    )
            elif type(block) is ThinkingBlock:
                if block.thinking:
                    events += self.stream.thoughts.full(block.thinking)
            elif type(block) is ToolUse:
                if self.stream.words.parts or self.stream.thoughts.parts:
                    events += self.stream.close()
                self.tools.start_call(block.id, block.name, block.input, events)
        return events

    def _usual_told(self, line: User) -> Events:
        blocks = line.message.content
        told = line.tool_use_result
        details = told if type(told) is Details and len(blocks) == 1 else None
        events: Events = []
        for block in blocks:
            if type(block) is TextBlock:
                events += self.told(block.text, nested=False)
            if type(block) is not ToolResultBlock:
                continue
            failed = block.is_error is True or (details is not None and details.interrupted)
            content = block.content
            status, text = self.tool_status(content if isinstance(content, str) else text_of(content), failed=failed)
            duration = None if details is None else details.milliseconds
            events += self.tools.end(block.tool_use_id or None, text, status, duration)
        return events
