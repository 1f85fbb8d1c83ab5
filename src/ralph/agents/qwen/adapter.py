"""Qwen Code: stream-json (with and without partial messages), json (an array of the same objects) and text.

The format is Claude Code's, the errors are Gemini CLI's. The first releases (0.1) still have Gemini CLI's json: one
object with the answer and the run's token counts.

After --resume, the usage in `result` covers the whole session. It includes hidden requests that no message reports, so
the run's own share cannot be computed here, and the usage is passed on as it is.
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
from ralph.transcripts.stream_json.adapter import ClaudeLikeAdapter, Events, Speaker, is_failure
from ralph.transcripts.stream_json.errors import Failure

#: Lines of the CLI that appear among the agent's words on a terminal.
_NOISE = (
    "Ripgrep not available:",
    "Warning: running headless with ",
    "Retrying provider attempt (",
    "Retrying in ",
    "Operation cancelled.",
)
_API_ERROR = "[API Error: "
#: The first releases report on stderr what their json leaves out.
_PROVIDER_ERROR = re.compile(r"OpenAI API (?:Streaming )?Error: (.+)")
_CUT = re.compile(r'\[?\{"type": ?"(?:system|stream_event|assistant|user|result)", ?"')
_NOT_A_COMMAND = re.compile(r'The command "/\S+" is not supported in this mode\.')
_FAILED_COMMAND = re.compile(r"^Command: .*^Exit Code: (?!0$)-?\d+$", re.MULTILINE | re.DOTALL)


class QwenAdapter(ClaudeLikeAdapter):
    name = "qwen"

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._stderr = StderrReader()
        #: why the CLI gave up, if only stderr says so
        self._fatal: Failure | None = None
        self._text_error = ""  # the last line of a text output, if it is an error
        self._provider_error = ""  # the error after which one of the first releases gave up
        self._retry_class: ErrorClass | None = None
        self._attempts = RecentKeys[int]()
        self._announced = False

    # -- lines

    def on_text(self, line: str) -> Events:
        if self.structured:
            return self.feed_stderr(line)  # a terminal mixes both streams
        if line.startswith(_API_ERROR):
            self._text_error = line
            return [Text(Tag.SYS, line)]
        if line.startswith(_NOISE):
            return [Text(Tag.SYS, line)]
        if line and not line.isspace():
            self._text_error = ""
        return [Text(Tag.AI, line)]

    def _broken(self, line: str, reason: str) -> Events:
        if not self.spoken and _CUT.match(line):
            self.structured = True  # json format has only one line, and it was cut
        return super()._broken(line, reason)

    def feed_stderr(self, line: str) -> Events:
        events: Events = [Text(Tag.SYS, line)]
        if found := _PROVIDER_ERROR.match(line):
            self._provider_error = found.group(1)
        for event in self._stderr.feed(line):
            if isinstance(event, Meta):
                events += self._from_stderr(event)
        last = self._stderr.last_object
        if last is not None:
            self._stderr.last_object = None
            failure = explain(get_str(get_dict(last, "error"), "message") or "the run failed")
            events += self._from_stderr(meta.error(failure.message, failure.error_class))
        return events

    def _from_stderr(self, event: Meta) -> Events:
        kind = ErrorClass(event.meta.get("class") or ErrorClass.FAILED)
        failure = Failure(str(event.meta.get("message")), kind)
        match event.meta["kind"]:
            case Kind.ERROR:
                if self.ended:
                    return []  # the result reported it
                self._fatal = failure
            case Kind.RETRY:
                self._retry_class = kind
                self._provider_error = ""
                self.last_error = failure
                attempt = get_count(event.meta, "attempt")
                if attempt in self._attempts:
                    return []
                self._attempts.add(attempt or 0)
        return [event]

    def flush(self) -> Events:
        self.last_error = self._fatal or self.last_error
        events = super().flush() + self._stderr.flush_held()
        last_error = self._text_error or self._provider_error
        if last_error and not self.structured:
            failure = explain(last_error)
            return [*events, meta.error(failure.message, failure.error_class), *failure.limit()]
        if not self.ended:
            # A run that hits a limit or gets a signal prints no result, but its messages have counts.
            usage = self.usage.result({}, self.model)
            if usage is not None and usage.total_tokens:
                events.insert(0, UsageEvent(usage))
        return events

    # -- objects

    def recognises(self, value: dict[str, Any]) -> bool:
        return _is_gemini_document(value) or super().recognises(value)

    def on_object(self, value: dict[str, Any]) -> Events:
        return self._gemini_document(value) if _is_gemini_document(value) else super().on_object(value)

    def _gemini_document(self, value: dict[str, Any]) -> Events:
        """The answer of one of the first releases. Only stderr tells that a run failed; the exit code is 0."""
        self.structured = self.ended = True
        events = GeminiAdapter().on_object(value)
        if value.get("error") or not self._provider_error:
            return events
        failure = explain(self._provider_error)
        failed = meta.result(ok=False, reason=failure.message, error_class=failure.error_class)
        return [*(e for e in events if not _is_result(e)), *failure.limit(), failed]

    def on_event(self, event: dict[str, Any]) -> Events:
        if event.get("type") == "goal_state":
            return []
        if (get_str(event.get("delta"), "text") or "").startswith(_API_ERROR):
            return []  # the CLI's text; it comes again as a message
        return super().on_event(event)

    def words(self, text: str, value: dict[str, Any], speaker: Speaker) -> Events:
        words, error = split_api_error(text)
        if not error and _NOT_A_COMMAND.fullmatch(text):
            words, error = "", text
        if speaker is Speaker.SUBAGENT or not error:
            return super().words(text, value, speaker)
        events = super().words(words, value, speaker) if words else self.stream.close()
        failure = explain(error)
        self.last_error = Failure(failure.message, failure.error_class)
        return [*events, Text(Tag.SYS, error), *failure.limit()]

    def tool_status(self, text: str, *, failed: bool) -> tuple[ToolStatus, str]:
        return super().tool_status(text, failed=failed or _FAILED_COMMAND.match(text) is not None)

    def on_system(self, value: dict[str, Any], subtype: str) -> Events:
        if subtype != "retry":
            return super().on_system(value, subtype)
        data = get_dict(value, "data")
        attempt = get_count(data, "attempt")
        reason = get_str(data, "error", "message", "reason") or "retry"
        if self.last_error is None:
            self.last_error = Failure(reason, self._retry_class or ErrorClass.FAILED)
        if attempt is None:
            announced, self._announced = self._announced, False
            return [] if announced else [meta.retry(reason, self._retry_class)]
        self._announced = True
        if attempt in self._attempts:
            return []  # stderr reported it, with its cause
        self._attempts.add(attempt)
        return [meta.retry(reason, self._retry_class, attempt=attempt, delay_ms=get_count(data, "delayMs"))]

    # -- the result

    def on_result(self, value: dict[str, Any]) -> Events:
        text = value.get("result")
        if isinstance(text, str) and not is_failure(value):
            words, error = split_api_error(text)
            if error:  # releases before 0.16 call it a success
                value = {**value, "is_error": True, "result": words, "error": {"message": error}}
        return super().on_result(value)

    def failure(self, value: dict[str, Any], text: str) -> Failure:
        error = value.get("error")
        message = error if isinstance(error, str) else get_str(error, "message")
        if not message:
            return super().failure(value, text)
        failure = explain(message, get_str(error, "type"), get_int(error, "code"))
        return Failure(failure.message, failure.error_class)


def _is_gemini_document(value: dict[str, Any]) -> bool:
    return "type" not in value and "stats" in value and ("response" in value or "error" in value)


def _is_result(event: TranscriptEvent) -> bool:
    return isinstance(event, Meta) and event.meta["kind"] == Kind.RESULT


ADAPTER = QwenAdapter
