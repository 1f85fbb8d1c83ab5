"""Qwen Code: stream-json (with and without partial messages), json (an array of the same objects), text.

Its first releases (0.1) are still Gemini CLI, with its json: one object with the answer and the run's counts.

The schema is Claude Code's, the errors are Gemini CLI's. After --resume the usage in `result` is the session's, not the
run's; hidden requests are in it as well and in no message, so that the two cannot be told apart: it is taken as it is.
"""

from __future__ import annotations

import re
from typing import Any

from ralph.agents.gemini.adapter import GeminiAdapter
from ralph.agents.gemini.errors import StderrReader, explain, split_api_error
from ralph.transcripts import meta
from ralph.transcripts.events import Meta, Tag, Text, ToolStatus, TranscriptEvent, UsageEvent
from ralph.transcripts.json_lines import get_count, get_dict, get_int, get_str
from ralph.transcripts.meta import ErrorClass, Kind
from ralph.transcripts.recent import RecentKeys
from ralph.transcripts.stream_json.adapter import ClaudeLikeAdapter, Events, is_failure
from ralph.transcripts.stream_json.tools import FAIL, OK

#: The CLI's own lines, which on a terminal stand among the agent's words.
_NOISE = (
    "Ripgrep not available:",
    "Warning: running headless with ",
    "Retrying provider attempt (",
    "Retrying in ",
    "Operation cancelled.",
)
#: How the first releases say on stderr what their json leaves out.
_PROVIDER_ERROR = re.compile(r"OpenAI API (?:Streaming )?Error: (.+)")
_CUT = re.compile(r'\[?\{"type": ?"(?:system|stream_event|assistant|user|result)", ?"')
_NOT_A_COMMAND = re.compile(r'The command "/\S+" is not supported in this mode\.')
_EXIT = re.compile(r"^Command: .*^Exit Code: (?!0$)-?\d+$", re.MULTILINE | re.DOTALL)


class QwenAdapter(ClaudeLikeAdapter):
    name = "qwen"
    quiet_events = frozenset({"ping", "goal_state"})

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._stderr = StderrReader()
        #: why the CLI gave up, where only stderr says so
        self._fatal: tuple[str, ErrorClass] | None = None
        self._last_error = ""  # of a text output: its last line, if that is an error
        self._provider_error = ""  # after which the first releases gave up
        self._retry_class: ErrorClass | None = None
        self._attempts = RecentKeys[int]()
        self._announced = False
        self.handlers["stream_event"] = self._on_stream_event

    # -- lines

    def on_text(self, line: str) -> Events:
        if self.structured:
            return self.feed_stderr(line)  # a terminal shows both streams as one
        if line.startswith("[API Error: "):
            self._last_error = line
            return [Text(Tag.SYS, line)]
        if line.startswith(_NOISE):
            return [Text(Tag.SYS, line)]
        if line and not line.isspace():
            self._last_error = ""
        return [Text(Tag.AI, line)]

    def _broken(self, line: str, reason: str) -> Events:
        if not self.spoken and _CUT.match(line):
            self.structured = True  # its JSON, cut in the first line: json has only one
        return super()._broken(line, reason)

    def feed_stderr(self, line: str) -> Events:
        events: Events = [Text(Tag.SYS, line)]
        if found := _PROVIDER_ERROR.match(line):
            self._provider_error = found.group(1)
        for event in self._stderr.feed(line):
            if isinstance(event, Meta):
                events += self._told(event)
        last = self._stderr.last_object
        if last is not None:
            self._stderr.last_object = None
            error = get_dict(last, "error")
            failure = explain(get_str(error, "message") or "the run failed")
            events += self._told(meta.error(failure.message, failure.error_class))
        return events

    def _told(self, event: Meta) -> Events:
        message, name = str(event.meta.get("message")), event.meta.get("class")
        kind = ErrorClass(name) if name else ErrorClass.FAILED
        match event.meta["kind"]:
            case Kind.ERROR:
                if self.ended:
                    return []  # said in the result
                self._fatal = (message, kind)
            case Kind.RETRY:
                self._retry_class = kind
                self._provider_error = ""
                self.trouble = (message, kind)
                attempt = get_count(event.meta, "attempt")
                if attempt in self._attempts:
                    return []
                self._attempts.add(attempt or 0)
        return [event]

    def flush(self) -> Events:
        self.trouble = self._fatal or self.trouble
        events = super().flush() + self._stderr.flush_held()
        last_error = self._last_error or self._provider_error
        if last_error and not self.structured:
            failure = explain(last_error)
            return [*events, meta.error(failure.message, failure.error_class), *failure.limit()]
        if not self.ended:
            usage = self.usage.result({}, self.model)  # limits and signals leave no result, but messages have counts
            if usage is not None and usage.total_tokens:
                events.insert(0, UsageEvent(usage))
        return events

    # -- objects

    def recognises(self, value: dict[str, Any]) -> bool:
        return _is_gemini_document(value) or super().recognises(value)

    def on_object(self, value: dict[str, Any]) -> Events:
        return self._gemini_document(value) if _is_gemini_document(value) else super().on_object(value)

    def _gemini_document(self, value: dict[str, Any]) -> Events:
        """Only stderr says that a run failed; it exits with 0."""
        self.structured = self.ended = True
        events = GeminiAdapter().on_object(value)
        if value.get("error") or not self._provider_error:
            return events
        failure = explain(self._provider_error)
        failed = meta.result(ok=False, reason=failure.message, error_class=failure.error_class)
        return [*(e for e in events if not _is_result(e)), *failure.limit(), failed]

    def is_cli_error(self, fragment: str) -> bool:
        return fragment.startswith("[API Error: ")

    def _on_stream_event(self, value: dict[str, Any]) -> Events:
        event = value.get("event")
        if type(event) is dict:
            if event.get("type") == "goal_state":
                return []
            text = get_str(event.get("delta"), "text")
            if text is not None and text.startswith("[API Error: "):
                return []  # the CLI's; it comes again as a message
        return self._stream_event(value)

    def words(self, text: str, value: dict[str, Any], *, synthetic: bool, nested: bool) -> Events:
        words, error = split_api_error(text) if "[API Error: " in text else (text, "")
        if not error and text.startswith('The command "/') and _NOT_A_COMMAND.fullmatch(text):
            words, error = "", text
        if nested or not error:
            return super().words(text, value, synthetic=synthetic, nested=nested)
        events = super().words(words, value, synthetic=synthetic, nested=False) if words else self.stream.close()
        failure = explain(error)
        self.trouble = (failure.message, failure.error_class)
        return [*events, Text(Tag.SYS, error), *failure.limit()]

    def is_plain(self, text: str) -> bool:
        return "[API Error: " not in text and text[:14] != 'The command "/' and super().is_plain(text)

    def tool_status(self, text: str, *, failed: bool) -> tuple[ToolStatus, str]:
        failed = failed or (text.startswith("Command: ") and _EXIT.match(text) is not None)
        return (FAIL if failed else OK), text

    def on_system(self, value: dict[str, Any], subtype: str) -> Events:
        if subtype != "retry":
            return super().on_system(value, subtype)
        data = get_dict(value, "data")
        attempt = get_count(data, "attempt")
        reason = get_str(data, "error", "message", "reason") or "retry"
        if self.trouble is None:
            self.trouble = (reason, self._retry_class or ErrorClass.FAILED)
        if attempt is None:
            begun, self._announced = self._announced, False
            return [] if begun else [meta.retry(reason, self._retry_class)]
        self._announced = True
        if attempt in self._attempts:
            return []  # stderr told it, with its cause
        self._attempts.add(attempt)
        return [meta.retry(reason, self._retry_class, attempt=attempt, delay_ms=get_count(data, "delayMs"))]

    # -- the last word

    def on_result(self, value: dict[str, Any]) -> Events:
        text = value.get("result")
        if isinstance(text, str) and not is_failure(value):
            # Releases before 0.16 call it a success.
            words, error = split_api_error(text)
            if error:
                value = {**value, "is_error": True, "result": words, "error": {"message": error}}
        return super().on_result(value)

    def failure(self, value: dict[str, Any], text: str) -> tuple[str, ErrorClass]:
        error = value.get("error")
        message = error if isinstance(error, str) else get_str(error, "message")
        if not message:
            return super().failure(value, text)
        failure = explain(message, get_str(error, "type"), get_int(error, "code"))
        return failure.message, failure.error_class


def _is_gemini_document(value: dict[str, Any]) -> bool:
    return "type" not in value and "stats" in value and ("response" in value or "error" in value)


def _is_result(event: TranscriptEvent) -> bool:
    return isinstance(event, Meta) and event.meta["kind"] == Kind.RESULT


ADAPTER = QwenAdapter
