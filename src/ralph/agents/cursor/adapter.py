"""Cursor's CLI: stream-json with and without partial output, json and text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

from ralph.agents.cursor.tools import read_call
from ralph.transcripts import meta
from ralph.transcripts.base import Capabilities
from ralph.transcripts.classify import classify, retry_after
from ralph.transcripts.events import Tag, Text, TranscriptEvent, Usage, UsageEvent
from ralph.transcripts.json_lines import (
    JsonAdapter,
    get_count,
    get_dict,
    get_int,
    get_list,
    get_str,
    strip_escapes,
)
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.recent import RecentKeys
from ralph.transcripts.repeats import Streamed
from ralph.transcripts.stream_json.tools import ToolCalls, text_of

if TYPE_CHECKING:
    from collections.abc import Callable

Events: TypeAlias = list[TranscriptEvent]

#: How its own errors on stderr begin: `Error: …`, `ConnectError: [unauthenticated] …`, `S: [resource_exhausted] …`.
_ERROR = re.compile(r"(?:[A-Z]\w*Error|Error|S): |Cannot use this model: |\[\w+\] Error")


class CursorAdapter(JsonAdapter):
    name = "cursor"
    capabilities = Capabilities(
        supports_roles=True, supports_tool_events=True, supports_usage_events=True, supports_prompt_hiding=True
    )

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._words = Streamed(Tag.AI)
        self._thoughts = Streamed(Tag.THINK)
        self._tools = ToolCalls()
        self._session: str | None = None
        self._model: str | None = None
        self._partial = False
        self._refused = RecentKeys[str]()
        self._ended = False
        self._handlers: dict[str, Callable[[dict[str, Any]], Events]] = {
            "system": self._system,
            "user": self._user,
            "thinking": self._thinking,
            "assistant": self._assistant,
            "tool_call": self._tool_call,
            "result": self._result,
            "error": self._error,
            "retry": self._retry,
            "connection": lambda _: [],
        }

    # -- lines

    def recognises(self, value: dict[str, Any]) -> bool:
        kind = value.get("type")
        return isinstance(kind, str) and ("session_id" in value or (kind in self._handlers and not self.spoken))

    def on_text(self, line: str) -> Events:
        line = strip_escapes(line)
        if self.structured:
            return [Text(Tag.SYS, line)] if line else []
        return [Text(Tag.AI, line)]

    def on_object(self, value: dict[str, Any]) -> Events:
        self.structured = True
        handler = self._handlers.get(get_str(value, "type") or "", _unknown)
        if self._session is None and (session := get_str(value, "session_id")):
            self._session = session
            return [meta.session(session, get_str(value, "model")), *handler(value)]
        return handler(value)

    def feed_stderr(self, line: str) -> Events:
        """The reason for a failed run appears only here."""
        line = strip_escapes(line)
        if not _ERROR.match(line):
            return [Text(Tag.SYS, line)]
        message = line.removeprefix("Error: ")
        kind = ErrorClass.FAILED if line.startswith("Cannot use this model") else classify(message)
        return [Text(Tag.SYS, line), meta.error(message[:500], kind), *_limit(message, kind)]

    def flush(self) -> Events:
        events = super().flush() + self._close()
        if self.structured and not self._ended:
            events.append(meta.error("the output ends without a result"))
        return events

    def _close(self) -> Events:
        return self._thoughts.stop() + self._words.stop()

    # -- messages

    def _system(self, value: dict[str, Any]) -> Events:
        if value.get("subtype") != "init":
            return [meta.unknown(value)]
        self._model = get_str(value, "model") or self._model
        return []

    def _user(self, value: dict[str, Any]) -> Events:
        text = text_of(get_dict(value, "message").get("content"))
        return [*self._close(), Text(Tag.PROMPT, text)] if text else []

    def _thinking(self, value: dict[str, Any]) -> Events:
        text = get_str(value, "text") or ""
        events = self._words.stop()
        if value.get("subtype") != "completed":
            return events + self._thoughts.fragment(text)
        return events + (self._thoughts.full(text) if text else self._thoughts.restart())

    def _assistant(self, value: dict[str, Any]) -> Events:
        """With partial output, the same words come up to three times.

        Fragments have only `timestamp_ms`, a copy of the segment also has `model_call_id`, and a last copy has neither.
        Without partial output, a message before a tool call has both too, so only the words tell a copy from a message.
        """
        message = get_dict(value, "message")
        text = text_of(message.get("content"))
        if not text:
            expected = isinstance(message.get("content"), str | list)
            return [] if expected else [meta.unknown(value)]
        events = self._thoughts.stop()
        if "timestamp_ms" in value and "model_call_id" not in value:
            self._partial = True
            return events + self._words.fragment(text)
        if self._partial:
            events += self._words.stop()
            if self._words.said.repeats(text):
                return events
        return events + self._words.full(text)

    def _tool_call(self, value: dict[str, Any]) -> Events:
        call = read_call(get_dict(value, "tool_call"))
        key = get_str(value, "call_id") or get_str(call.args, "toolCallId")
        subtype = value.get("subtype")
        events = self._thoughts.restart() + self._words.restart()
        if subtype == "started" or (subtype != "completed" and not call.ended):
            return events + self._tools.start(key, call.name, call.args)
        if call.refused is not None:
            self._refused.add(call.refused)
        return events + self._tools.end(
            key, call.output, call.status, call.duration_ms, name=call.name, arguments=call.args
        )

    # -- the CLI's own messages

    def _error(self, value: dict[str, Any]) -> Events:
        inner = value.get("error")
        text = inner if isinstance(inner, str) else get_str(inner, "message")
        message = text or get_str(value, "message", "text") or "the agent reported an error"
        kind = classify(message, get_int(inner, "status", "code"))
        return [*self._close(), meta.error(message, kind), *_limit(message, kind)]

    def _retry(self, value: dict[str, Any]) -> Events:
        message = get_str(value, "message", "error", "reason")
        kind = classify(message) if message else None
        attempt, delay = get_count(value, "attempt"), get_count(value, "delay_ms", "delayMs")
        return [meta.retry(message or "the request failed", kind, attempt=attempt, delay_ms=delay)]

    def _result(self, value: dict[str, Any]) -> Events:
        """`result` has all messages of the run, joined without a separator."""
        events = self._close()
        self._ended = True
        subtype = get_str(value, "subtype") or "success"
        failed = bool(value.get("is_error")) or subtype != "success"
        text = get_str(value, "result") or ""
        new = bool(text) and not self._words.said.repeats(text)
        if new:
            events.append(Text(Tag.SYS if failed else Tag.AI, text))
        usage = _usage(get_dict(value, "usage"), self._model)
        if usage is not None:
            events.append(UsageEvent(usage))
        if failed:
            reason = (text if new else "") or get_str(value, "error", "message") or subtype
            kind = classify(reason)
            return [*events, *_limit(reason, kind), meta.result(ok=False, reason=reason, error_class=kind)]
        denied = [*self._refused, *(text_of(d) for d in get_list(value, "permission_denials"))]
        if denied:
            reason = f"refused: {', '.join(dict.fromkeys(d for d in denied if d)) or 'a tool'}"
            return [*events, meta.result(ok=False, reason=reason, error_class=ErrorClass.PERMISSION_DENIED)]
        return [*events, meta.result(ok=True, duration_ms=get_count(value, "duration_ms"))]


def _unknown(value: dict[str, Any]) -> Events:
    return [meta.unknown(value)]


def _limit(message: str, kind: ErrorClass) -> Events:
    wait = retry_after(message) if kind is ErrorClass.RATE_LIMITED else None
    return [meta.rate_limit(None, message, retry_after=wait)] if wait else []


def _usage(value: dict[str, Any], model: str | None) -> Usage | None:
    """The counts cover this invocation only, even after a resume. `inputTokens` exclude cache reads and writes."""
    fresh, output = get_count(value, "inputTokens"), get_count(value, "outputTokens")
    if fresh is None and output is None:
        return None
    read, written = get_count(value, "cacheReadTokens"), get_count(value, "cacheWriteTokens")
    return Usage(
        prompt_tokens=None if fresh is None else fresh + (read or 0) + (written or 0),
        completion_tokens=output,
        model=model,
        cached_tokens=read,
        cache_write_tokens=written,
    )


ADAPTER = CursorAdapter
