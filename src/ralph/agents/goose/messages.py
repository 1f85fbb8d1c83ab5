"""Goose's messages: fragments of words and thoughts, tool calls and their results, and goose's own errors."""

from __future__ import annotations

from typing import Any

from ralph.agents.goose.tools import end_call, start_call
from ralph.agents.goose.words import error_class, own_error
from ralph.transcripts import meta
from ralph.transcripts.deltas import DeltaLines
from ralph.transcripts.events import Tag, Text, TranscriptEvent
from ralph.transcripts.json_lines import get_dict, get_str
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.tool_calls import ToolCalls

#: Copies of longer thoughts are not recognised, so that memory stays bounded.
_LONGEST_THOUGHT = 1 << 20


class MessageReader:
    """Translates messages and remembers the latest problem that the model has not got past."""

    def __init__(self) -> None:
        self.model: str | None = None
        self.problem: tuple[str, ErrorClass] | None = None
        self._tools = ToolCalls()
        self._words = DeltaLines(Tag.AI)
        self._thoughts = DeltaLines(Tag.THINK)
        self._thought: list[str] = []  # fragments of the current thought, which some providers repeat whole
        self._thought_length = 0
        self._message: str | None = None  # the id of the message that is coming in fragments
        self._names_models = False  # this release names the model in each message that a model wrote

    def read(self, message: dict[str, Any]) -> list[TranscriptEvent]:
        events: list[TranscriptEvent] = []
        key = get_str(message, "id")
        if key != self._message:
            events = self.finish()
            self._message = key
        metadata = get_dict(message, "metadata")
        if "inference" in metadata:
            self._names_models = True
            self.model = get_str(metadata["inference"], "requestedModel", "model") or self.model
        content = message.get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        for block in blocks:
            events += self._block(block, message.get("role"), metadata)
        return events

    def finish(self) -> list[TranscriptEvent]:
        """The rest of the words and thoughts: what follows does not continue them."""
        self._thought, self._thought_length = [], 0
        return self._thoughts.flush() + self._words.flush()

    def final_problem(self) -> tuple[str, ErrorClass] | None:
        """Why the run failed: an error, or a tool that was refused and did not run later either."""
        if self.problem is None and self._tools.refused:
            name = next(iter(self._tools.refused))
            return f"goose did not run the tool {name}", ErrorClass.PERMISSION_DENIED
        return self.problem

    def _block(self, block: Any, role: Any, metadata: dict[str, Any]) -> list[TranscriptEvent]:
        match block:
            case {"type": "text", "text": str(text)}:
                return self._text(text, role, metadata)
            case {"type": "thinking", "thinking": str(text)}:
                return self._words.flush() + self._think(text)
            case {"type": "toolRequest" | "frontendToolRequest"}:
                self.problem = None  # the model continued
                return self.finish() + start_call(self._tools, block)
            case {"type": "toolResponse"}:
                return self.finish() + end_call(self._tools, block)
            case {"type": "systemNotification"}:
                return self.finish() + self._notification(block)
            case {"type": "error"}:
                return self.finish() + self._error(block)
            case {"type": "toolConfirmationRequest" | "actionRequired"}:
                asked = get_str(block, "toolName", "prompt") or get_str(get_dict(block, "data"), "toolName", "message")
                return [*self.finish(), Text(Tag.SYS, f"asks for approval: {asked or 'a tool'}")]
            case {"type": "redactedThinking" | "image" | "reasoning"}:
                return []
        return [meta.unknown(block)]

    def _text(self, text: str, role: Any, metadata: dict[str, Any]) -> list[TranscriptEvent]:
        hidden = metadata.get("userVisible") is False  # a summary of what was said before
        if role != "assistant" or hidden:
            tag = Tag.PROMPT if role == "user" and not hidden else Tag.SYS
            return [*self.finish(), Text(tag, text)] if text else []
        problem = None if "inference" in metadata else own_error(text, certain=self._names_models)
        if problem is not None:
            self.problem = problem
            return [*self.finish(), Text(Tag.SYS, text)]
        if text and not text.isspace():
            self.problem = None  # the model continued
        return self._thoughts.flush() + self._words.feed(text)

    def _think(self, text: str) -> list[TranscriptEvent]:
        if len(self._thought) > 1 and len(text) == self._thought_length and text == "".join(self._thought):
            return self._thoughts.flush()  # a copy
        if self._thought_length > _LONGEST_THOUGHT:
            self._thought, self._thought_length = [], 0
        if text:
            self._thought.append(text)
            self._thought_length += len(text)
        return self._thoughts.feed(text)

    def _notification(self, block: dict[str, Any]) -> list[TranscriptEvent]:
        text = get_str(block, "msg", "message") or ""
        if block.get("notificationType") == "creditsExhausted":
            self.problem = (text or "the credits are used up", ErrorClass.QUOTA)
        elif text.startswith("Unable to continue"):
            self.problem = (text, error_class(text))
        return [Text(Tag.SYS, text)] if text else []

    def _error(self, block: dict[str, Any]) -> list[TranscriptEvent]:
        message = get_str(block, "message") or "the run failed"
        login = block.get("kind") == "authentication"
        self.problem = (message, ErrorClass.AUTH if login else error_class(message))
        return [Text(Tag.SYS, message)]
