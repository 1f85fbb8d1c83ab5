"""Goose: `run --output-format` stream-json, json, text, and ACP.

Its exit code says little: a failed model call is an assistant message in goose's own words, then `complete` and exit 0.
A message that a model wrote names it (`inference`), in releases that are new enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ralph.agents.goose import words
from ralph.agents.goose.lines import Answer, Call, Inference, Line, Thought, Words, decode_line
from ralph.agents.goose.tools import GooseTools
from ralph.transcripts import deltas, meta
from ralph.transcripts.acp import AcpReader, is_rpc
from ralph.transcripts.base import Capabilities
from ralph.transcripts.classify import retry_after
from ralph.transcripts.deltas import DeltaLines
from ralph.transcripts.events import Tag, Text, TranscriptEvent, Usage, UsageEvent, decode_json
from ralph.transcripts.json_lines import (
    JsonAdapter,
    Usual,
    get_count,
    get_dict,
    get_float,
    get_list,
    get_str,
    strip_escapes,
)
from ralph.transcripts.meta import ErrorClass

if TYPE_CHECKING:
    from collections.abc import Callable

_CUT = "the output ends without a result"
_LIMITS = (ErrorClass.RATE_LIMITED, ErrorClass.QUOTA, ErrorClass.OVERLOADED)


class GooseAdapter(JsonAdapter):
    name = "goose"
    capabilities = Capabilities(
        supports_roles=True, supports_tool_events=True, supports_usage_events=True, supports_prompt_hiding=True
    )

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._acp = AcpReader()
        self._tools = GooseTools()
        self._words = DeltaLines(Tag.AI)
        self._thoughts = DeltaLines(Tag.THINK)
        self._thought: list[str] = []  # the fragments of the current thought: some providers repeat it whole
        self._thought_size = 0
        self._message: str | None = None  # the id of the message that is coming in fragments
        self._session = False
        self._model: str | None = None
        self._named = False  # this release names the model in each message that one wrote
        self._problem: tuple[str, ErrorClass] | None = None
        self._stderr_problem: str | None = None
        self._failed_to_start = False
        self._ended = False
        self._opening = True  # nothing but banners has come
        self._last: list[str] = []  # the last lines of the text format
        self._handlers: dict[str, Callable[[dict[str, Any]], list[TranscriptEvent]]] = {
            "message": self._on_message,
            "complete": self._on_complete,
            "error": self._on_error,
            "notification": self._on_notification,
            "model_change": self._on_model,
        }

    # -- lines

    def recognises(self, value: dict[str, Any]) -> bool:
        match value.get("type"):
            case "message":
                return isinstance(value.get("message"), dict)
            case "complete":
                return "total_tokens" in value
            case "error":
                return isinstance(value.get("error"), str)
            case "notification":
                return "extension_id" in value
            case "model_change":
                return "model" in value
        return is_rpc(value) or _is_document(value)

    def on_object(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self.structured = True
        kind = value.get("type")
        handler = self._handlers.get(kind) if isinstance(kind, str) else None
        if handler is not None:
            return handler(value)
        if is_rpc(value):
            return self._acp.feed(value)
        return self._on_document(value) if _is_document(value) else [meta.unknown(value)]

    def on_text(self, line: str) -> list[TranscriptEvent]:
        bare = strip_escapes(line)
        if self.structured:
            return self._glued(line, bare)
        if self._opening:
            if not bare.strip() or words.is_banner(bare):
                return [Text(Tag.SYS, line), *self._banner(bare)]
            self._opening = False
            if bare.startswith("  error: "):  # before it began; the format does not matter
                self._failed_to_start = True
                self._stderr_problem = bare.removeprefix("  error: ")
                return [Text(Tag.SYS, line)]
        if bare.strip():
            self._last = [*self._last[-1:], bare.rstrip()]
        if words.TEXT_TOOL.match(bare):
            return [Text(Tag.TOOL, line)]
        own = self._failed_to_start or words.is_own_line(bare)
        return [Text(Tag.SYS if own else Tag.AI, line)]

    def feed_stderr(self, line: str) -> list[TranscriptEvent]:
        bare = strip_escapes(line)
        if bare.startswith("Error: ") and self._stderr_problem is None:
            self._stderr_problem = bare.removeprefix("Error: ")
        return [Text(Tag.SYS, line)]

    def flush(self) -> list[TranscriptEvent]:
        if len(self._document) > 1 and self._document[1].strip() == '"messages": [':
            self.structured = True  # a document that was cut is not the agent's words
        events = super().flush() + self._finish_words()
        if self._acp.used:
            return events + self._acp.flush()
        if self._ended:
            return events
        if self._stderr_problem is not None:
            return events + self._fatal(self._stderr_problem, words.error_class(self._stderr_problem))
        if self.structured:
            return [*events, meta.error(_CUT)]
        message = words.text_error(self._last)
        return events if message is None else events + self._fatal(message, words.error_class(message))

    def _glued(self, line: str, bare: str) -> list[TranscriptEvent]:
        """A line of goose's words in a JSON stream. When interrupted it writes one with an event at its end."""
        if bare.startswith("Error: "):  # a terminal shows both streams as one
            return self.feed_stderr(line)
        start = bare.find('{"type":"')
        if start > 0:
            try:
                value = decode_json(bare[start:])
            except (ValueError, RecursionError):
                return [Text(Tag.SYS, line)]
            if isinstance(value, dict) and self.recognises(value):
                return [Text(Tag.SYS, bare[:start]), *self.on_object(value)]
        return [Text(Tag.SYS, line)]

    def _banner(self, bare: str) -> list[TranscriptEvent]:
        self._model = words.banner_model(bare) or self._model
        session = None if self._session else words.banner_session(bare)
        if session is None:
            return []
        self._session = True
        return [meta.session(session, self._model)]

    # -- stream-json

    def _usual(self, line: Line, events: list[TranscriptEvent]) -> bool:
        """A fragment of a model's words or thoughts, a call or its result, as most lines are."""
        message = line.message
        blocks = message.content
        told = message.metadata.inference
        if len(blocks) != 1:
            return False
        block = blocks[0]
        # Not by isinstance, which is slow to say no.
        spoken = type(block) is Words or type(block) is Thought
        if spoken and (type(told) is not Inference or message.role != "assistant" or message.metadata.visible is False):
            return False
        if message.id != self._message:
            events += self._finish_words()
            self._message = message.id
        if type(told) is Inference:
            self._named = True
            self._model = told.requested or told.model or self._model
        if type(block) is Words:
            if self._thoughts.begun:
                events += self._thoughts.flush()
            if self._problem is not None and block.text.strip():
                self._problem = None  # the model went on
            self._words.add(block.text, events)
        elif type(block) is Thought:
            if self._words.begun:
                events += self._words.flush()
            self._think(block.thinking, events)
        else:
            events += self._finish_words()
            if type(block) is Call:
                self._problem = None  # the model went on
                request = block.tool_call.value
                events += self._tools.start_call(block.id, request.name or "tool", request.arguments)
            elif type(block) is Answer:
                events += self._answered(block)
        return True

    def _answered(self, block: Answer) -> list[TranscriptEvent]:
        told = block.tool_result
        value = told.value
        structured = value.structured_content
        return self._tools.end_call(
            block.id,
            "\n".join([part.text for part in value.content if part.text]),
            failed=told.status == "error" or value.is_error or (structured is not None and structured.exit_code != 0),
            known=told.status == "success",
            structured=structured is not None,
        )

    def _on_message(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        message = value.get("message")
        if not isinstance(message, dict):
            return [meta.unknown(value)]
        key = message.get("id")
        if key != self._message:
            events = self._finish_words()
            self._message = key if isinstance(key, str) else None
        else:
            events = []
        content = message.get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        told = message.get("metadata")
        metadata: dict[str, Any] = told if isinstance(told, dict) else {}
        if "inference" in metadata:
            self._named = True
            self._model = get_str(metadata["inference"], "requestedModel", "model") or self._model
        for block in blocks:
            events += self._block(block, message.get("role"), metadata)
        return events

    def _block(self, block: Any, role: Any, metadata: dict[str, Any]) -> list[TranscriptEvent]:
        match block.get("type") if type(block) is dict else None:
            case "text" if type(block.get("text")) is str:
                return self._text(block["text"], role, metadata)
            case "toolResponse":
                return self._finish_words() + self._tools.end(block)
            case "toolRequest" | "frontendToolRequest":
                self._problem = None  # the model went on
                return self._finish_words() + self._tools.start(block)
            case "thinking" if type(block.get("thinking")) is str:
                events = self._words.flush()
                self._think(block["thinking"], events)
                return events
            case "systemNotification":
                return [*self._finish_words(), *self._notify(block)]
            case "error":
                message = get_str(block, "message") or "the run failed"
                login = block.get("kind") == "authentication"
                self._problem = (message, ErrorClass.AUTH if login else words.error_class(message))
                return [*self._finish_words(), Text(Tag.SYS, message)]
            case "toolConfirmationRequest" | "actionRequired":
                asked = get_str(block, "toolName", "prompt") or get_str(get_dict(block, "data"), "toolName", "message")
                return [*self._finish_words(), Text(Tag.SYS, f"asks for approval: {asked or 'a tool'}")]
            case "redactedThinking" | "image" | "reasoning":
                return []
        return [meta.unknown(block)]

    def _text(self, text: str, role: Any, metadata: dict[str, Any]) -> list[TranscriptEvent]:
        if role == "user":
            tag = Tag.SYS if metadata.get("userVisible") is False else Tag.PROMPT
            return [*self._finish_words(), Text(tag, text)] if text else []
        if role != "assistant" or metadata.get("userVisible") is False:  # a summary of what was said before
            return [*self._finish_words(), Text(Tag.SYS, text)] if text else []
        if "inference" not in metadata:
            problem = words.own_error(text, certain=self._named)
            if problem is not None:
                self._problem = problem
                return [*self._finish_words(), Text(Tag.SYS, text)]
        if self._problem is not None and text.strip():
            self._problem = None  # the model went on
        return [*self._thoughts.flush(), *self._words.feed(text)]

    def _think(self, text: str, events: list[TranscriptEvent]) -> None:
        thought = self._thought
        # The first fragment is looked at first: it tells nearly always that this is no copy.
        maybe = len(thought) > 1 and text.startswith(thought[0])
        if maybe and len(text) == self._thoughts.length and text == "".join(thought):
            events += self._thoughts.flush()
            return
        self._thought_size += len(text) + deltas.FRAGMENT
        if self._thought_size > deltas.MAX_HELD:
            self._thought, self._thought_size = [], 0  # a copy of what is as long is not looked for
        self._thought.append(text)
        self._thoughts.add(text, events)

    def _notify(self, block: dict[str, Any]) -> list[TranscriptEvent]:
        text = get_str(block, "msg", "message") or ""
        if block.get("notificationType") == "creditsExhausted":
            self._problem = (text or "the credits are used up", ErrorClass.QUOTA)
        elif text.startswith("Unable to continue"):
            self._problem = (text, words.error_class(text))
        return [Text(Tag.SYS, text)] if text else []

    def _on_notification(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        """From an extension, or from a subagent: nobody's last words."""
        text = get_str(get_dict(value, "log"), "message") or get_str(value, "message")
        return [Text(Tag.SYS, text)] if text else []

    def _on_model(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self._model = get_str(value, "model") or self._model
        return []

    # -- json

    def _on_document(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        events: list[TranscriptEvent] = []
        for message in _of_this_run(get_list(value, "messages")):
            self._message = None
            events += self._on_message({"message": message})
        return events + self._end(get_dict(value, "metadata"))

    # -- the end

    def _on_complete(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        return self._end(value)

    def _end(self, told: dict[str, Any]) -> list[TranscriptEvent]:
        """The last line, or the metadata of a document.

        Its tokens are those of the session. After a resume they hold the runs before as well, by an amount that
        nothing in the output tells.
        """
        events = self._finish_words()
        usage = _usage(told, self._model)
        if usage is not None:
            events.append(UsageEvent(usage))
        self._ended = True
        status = get_str(told, "status")
        problem = self._problem or self._tools.refused()
        if problem is None and status in (None, "completed"):
            return [*events, meta.result(ok=True, reason=status)]
        reason, error_class = problem or (f"the run ended as {status}", ErrorClass.FAILED)
        return [
            *events,
            *_limit(reason, error_class),
            meta.result(ok=False, reason=reason, error_class=error_class),
        ]

    def _on_error(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        told = value.get("error")
        message = told if isinstance(told, str) and told else get_str(told, "message") or "the run failed"
        error_class = self._problem[1] if self._problem else words.error_class(message)
        self._ended = True
        return [*self._finish_words(), Text(Tag.SYS, message), *self._fatal(message, error_class)]

    def _fatal(self, message: str, error_class: ErrorClass) -> list[TranscriptEvent]:
        return [*_limit(message, error_class), meta.error(message, error_class)]

    def _finish_words(self) -> list[TranscriptEvent]:
        if self._thought:
            self._thought, self._thought_size = [], 0
        events = self._thoughts.flush() if self._thoughts.begun else []
        if self._words.begun:
            events += self._words.flush()
        return events


def _is_document(value: dict[str, Any]) -> bool:
    return isinstance(value.get("messages"), list) and isinstance(value.get("metadata"), dict)


def _of_this_run(messages: list[Any]) -> list[Any]:
    """A resumed session's document begins with what was said before: a run has one prompt, the last."""
    for index in range(len(messages) - 1, 0, -1):
        message = messages[index]
        if (
            get_str(message, "role") == "user"
            and get_dict(message, "metadata").get("userVisible") is not False
            and any(get_str(block, "type") == "text" for block in get_list(message, "content"))
        ):
            return messages[index:]
    return messages


def _limit(message: str, error_class: ErrorClass) -> list[TranscriptEvent]:
    seconds = retry_after(message) if error_class in _LIMITS else None
    return [] if seconds is None else [meta.rate_limit(message=message, retry_after=seconds)]


def _usage(told: dict[str, Any], model: str | None) -> Usage | None:
    """Goose's input counts hold the cached ones, whatever the provider's API."""
    usage = Usage(
        prompt_tokens=get_count(told, "input_tokens"),
        completion_tokens=get_count(told, "output_tokens"),
        total_tokens=get_count(told, "total_tokens"),
        cached_tokens=get_count(told, "cache_read_input_tokens"),
        cache_write_tokens=get_count(told, "cache_write_input_tokens"),
        cost_usd=get_float(told, "cost_usd"),
    )
    return msgspec.structs.replace(usage, model=model) if usage != Usage() else None


ADAPTER = GooseAdapter
