"""Goose: `run --output-format` stream-json, json, text, and ACP.

Its exit code says little: a failed model call is an assistant message in goose's own words, then `complete` and exit 0.
Newer releases name the model (`inference`) in each message that a model wrote.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec

from ralph.agents.goose import words
from ralph.agents.goose.messages import MessageReader
from ralph.transcripts import meta
from ralph.transcripts.acp import AcpReader, is_rpc
from ralph.transcripts.base import Capabilities
from ralph.transcripts.errors import CUT, fatal_error, limit_events
from ralph.transcripts.events import Tag, Text, TranscriptEvent, Usage, UsageEvent, decode_json
from ralph.transcripts.json_lines import JsonAdapter, get_count, get_dict, get_float, get_list, get_str, strip_escapes
from ralph.transcripts.meta import ErrorClass


class GooseAdapter(JsonAdapter):
    name = "goose"
    capabilities = Capabilities(
        supports_roles=True, supports_tool_events=True, supports_usage_events=True, supports_prompt_hiding=True
    )

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._acp = AcpReader()
        self._messages = MessageReader()
        self._session = False
        self._stderr_problem: str | None = None
        self._failed_to_start = False
        self._ended = False
        self._opening = True  # only banners so far
        self._last_lines = deque[str](maxlen=2)  # of the text format

    # -- lines

    def recognises(self, value: dict[str, Any]) -> bool:
        match value:
            case (
                {"type": "message", "message": dict()}
                | {"type": "complete", "total_tokens": _}
                | {"type": "error", "error": str()}
                | {"type": "notification", "extension_id": _}
                | {"type": "model_change", "model": _}
            ):
                return True
        return is_rpc(value) or _is_document(value)

    def on_object(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self.structured = True
        match value.get("type"):
            case "message" if isinstance(value.get("message"), dict):
                return self._messages.read(value["message"])
            case "complete":
                return self._end(value)
            case "error":
                return self._error(value)
            case "notification":  # from an extension or a subagent
                text = get_str(get_dict(value, "log"), "message") or get_str(value, "message")
                return [Text(Tag.SYS, text)] if text else []
            case "model_change":
                self._messages.model = get_str(value, "model") or self._messages.model
                return []
        if is_rpc(value):
            return self._acp.feed(value)
        return self._document_of(value) if _is_document(value) else [meta.unknown(value)]

    def on_text(self, line: str) -> list[TranscriptEvent]:
        bare = strip_escapes(line) if "\x1b" in line else line
        if self.structured:
            return self._text_between_objects(line, bare)
        blank = not bare or bare.isspace()
        if self._opening and (blank or words.is_banner(bare)):
            return [Text(Tag.SYS, line), *self._banner(bare)]
        if self._opening:
            self._opening = False
            if bare.startswith("  error: "):  # goose could not start, whatever the format
                self._failed_to_start = True
                self._stderr_problem = bare.removeprefix("  error: ")
        if not blank:
            self._last_lines.append(bare)
        if self._failed_to_start or words.is_own_line(bare):
            return [Text(Tag.SYS, line)]
        return [Text(Tag.TOOL if words.is_tool_line(bare) else Tag.AI, line)]

    def feed_stderr(self, line: str) -> list[TranscriptEvent]:
        bare = strip_escapes(line)
        if bare.startswith("Error: ") and self._stderr_problem is None:
            self._stderr_problem = bare.removeprefix("Error: ")
        return [Text(Tag.SYS, line)]

    def flush(self) -> list[TranscriptEvent]:
        if len(self._document) > 1 and self._document[1].strip() == '"messages": [':
            self.structured = True  # a document that was cut is not the agent's words
        events = super().flush() + self._messages.finish()
        if self._acp.used:
            return events + self._acp.flush()
        if self._ended:
            return events
        problem = self._stderr_problem
        if problem is None and self.structured:
            return [*events, meta.error(CUT)]
        if problem is None:
            problem = words.text_error(list(self._last_lines))
        return events if problem is None else events + fatal_error(problem, words.error_class(problem))

    def _text_between_objects(self, line: str, bare: str) -> list[TranscriptEvent]:
        """Goose's own text in a JSON stream. When it is interrupted, an event follows on the same line."""
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
        self._messages.model = words.banner_model(bare) or self._messages.model
        session = None if self._session else words.banner_session(bare)
        if session is None:
            return []
        self._session = True
        return [meta.session(session, self._messages.model)]

    # -- the json format, and the end of a run

    def _document_of(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        events: list[TranscriptEvent] = []
        for message in _of_this_run(get_list(value, "messages")):
            events += self._messages.finish()
            events += self._messages.read(message) if isinstance(message, dict) else [meta.unknown(message)]
        return events + self._end(get_dict(value, "metadata"))

    def _end(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        """The last line, or the metadata of a document.

        Its tokens are those of the session. After a resume they include earlier runs, and nothing in the output tells
        how many of them.
        """
        events = self._messages.finish()
        usage = _usage(value, self._messages.model)
        if usage is not None:
            events.append(UsageEvent(usage))
        self._ended = True
        status = get_str(value, "status")
        problem = self._messages.final_problem()
        if problem is None and status in (None, "completed"):
            return [*events, meta.result(ok=True, reason=status)]
        reason, error_class = problem or (f"the run ended as {status}", ErrorClass.FAILED)
        events += limit_events(reason, error_class)
        return [*events, meta.result(ok=False, reason=reason, error_class=error_class)]

    def _error(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        message = get_str(value, "error") or get_str(value.get("error"), "message") or "the run failed"
        problem = self._messages.problem
        error_class = problem[1] if problem else words.error_class(message)
        self._ended = True
        return [*self._messages.finish(), Text(Tag.SYS, message), *fatal_error(message, error_class)]


def _is_document(value: dict[str, Any]) -> bool:
    return isinstance(value.get("messages"), list) and isinstance(value.get("metadata"), dict)


def _of_this_run(messages: list[Any]) -> list[Any]:
    """A resumed session's document begins with earlier runs. A run has one prompt, so this one starts at the last."""
    for index in range(len(messages) - 1, 0, -1):
        message = messages[index]
        if (
            get_str(message, "role") == "user"
            and get_dict(message, "metadata").get("userVisible") is not False
            and any(get_str(block, "type") == "text" for block in get_list(message, "content"))
        ):
            return messages[index:]
    return messages


def _usage(value: dict[str, Any], model: str | None) -> Usage | None:
    """Goose's input tokens include the cached ones, whatever the provider's API."""
    usage = Usage(
        prompt_tokens=get_count(value, "input_tokens"),
        completion_tokens=get_count(value, "output_tokens"),
        total_tokens=get_count(value, "total_tokens"),
        cached_tokens=get_count(value, "cache_read_input_tokens"),
        cache_write_tokens=get_count(value, "cache_write_input_tokens"),
        cost_usd=get_float(value, "cost_usd"),
    )
    return msgspec.structs.replace(usage, model=model) if usage != Usage() else None


ADAPTER = GooseAdapter
