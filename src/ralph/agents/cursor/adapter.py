"""Cursor's CLI: stream-json with and without partial output, json, text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

from ralph.agents.cursor.lines import UNSET, Assistant, Line, Thinking, ToolCall, User, decode_line
from ralph.agents.cursor.tools import Call, read_call, read_result, read_success, tool_name
from ralph.transcripts import meta
from ralph.transcripts.base import Capabilities
from ralph.transcripts.classify import classify, retry_after
from ralph.transcripts.events import Tag, Text, TranscriptEvent, Usage, UsageEvent
from ralph.transcripts.json_lines import (
    JsonAdapter,
    Usual,
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

#: How its own errors begin, on stderr: `Error: …`, `ConnectError: [unauthenticated] …`, `S: [resource_exhausted] …`.
_ERROR = re.compile(r"(?:[A-Z]\w*Error|Error|S): |Cannot use this model: |\[\w+\] Error")

_PROMPT = Tag.PROMPT  # an enum's members are slow to look up


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

    def usual(self) -> Usual | None:
        return None if self._session is None else (decode_line, self._usual)

    def _usual(self, line: Line, events: Events) -> bool:
        # Not by isinstance, which is slow to say no.
        if type(line) is ToolCall:
            return self._usual_call(line, events)
        if type(line) is Assistant:
            blocks = line.message.content
            if len(blocks) != 1 or not blocks[0].text:
                return False
            partial = line.timestamp_ms is not UNSET and line.model_call_id is UNSET
            self._spoken(blocks[0].text, partial, events)
        elif type(line) is Thinking:
            self._thought(line.text, line.subtype == "completed", events)
        elif type(line) is User:
            blocks = line.message.content
            if len(blocks) != 1 or not blocks[0].text:
                return False
            events += self._close()
            events.append(Text(_PROMPT, blocks[0].text))
        return True

    def _usual_call(self, line: ToolCall, events: Events) -> bool:
        """False for a call that must be read as an object."""
        if len(line.tool_call) != 1 or not line.call_id:
            return False
        ((key, body),) = line.tool_call.items()
        name = tool_name(key, body.args)
        if name is None:
            return False
        if line.subtype == "started":
            events += self._restart()
            self._tools.start_call(line.call_id, name, body.args, events)
            return True
        result = body.result
        inner = result.get("success") if result is not None and line.subtype == "completed" else None
        if type(inner) is not dict:
            events += self._called(read_result(name, body.args, result), line.call_id, line.subtype)
            return True
        status, output, duration = read_success(inner)
        events += self._restart()
        self._tools.end_call(events, line.call_id, output, status, duration, name, body.args)
        return True

    def on_object(self, value: dict[str, Any]) -> Events:
        self.structured = True
        kind = value.get("type")
        handler = self._handlers.get(kind, _unknown) if type(kind) is str else _unknown
        if self._session is None and (found := get_str(value, "session_id")):
            self._session = found
            started: Events = [meta.session(found, get_str(value, "model"))]
            return started + handler(value)
        return handler(value)

    def feed_stderr(self, line: str) -> Events:
        """A failed run says why here, and nowhere else."""
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
        events = self._thoughts.stop() if self._thoughts.parts else []
        return events + self._words.stop() if self._words.parts else events

    def _restart(self) -> Events:
        events = self._thoughts.restart()
        return events + self._words.restart() if events else self._words.restart()

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
        events: Events = []
        self._thought(get_str(value, "text") or "", value.get("subtype") == "completed", events)
        return events

    def _thought(self, text: str, completed: bool, events: Events) -> None:
        if self._words.parts:
            events += self._words.stop()
        if not completed:
            self._thoughts.add(text, events)
        elif text:
            self._thoughts.add_full(text, events)
        else:
            events += self._thoughts.restart()

    def _assistant(self, value: dict[str, Any]) -> Events:
        """With partial output the same words come up to three times.

        Fragments have `timestamp_ms` alone; a copy of the segment has `model_call_id` too, a last one neither. Without
        partial output a message before a tool call also has both, so only the words tell a copy from a message.
        """
        message = get_dict(value, "message")
        content = message.get("content")
        text = text_of(content)
        if not text:
            return [] if message else [meta.unknown(value)]
        events: Events = []
        self._spoken(text, "timestamp_ms" in value and "model_call_id" not in value, events)
        return events

    def _spoken(self, text: str, partial: bool, events: Events) -> None:
        words = self._words
        if self._thoughts.parts:
            events += self._thoughts.stop()
        if partial:
            self._partial = True
            words.add(text, events)
            return
        if self._partial:
            if words.parts:
                events += words.stop()
            if words.said.repeats(text):
                return
        words.add_full(text, events)

    def _tool_call(self, value: dict[str, Any]) -> Events:
        call = read_call(get_dict(value, "tool_call"))
        key = get_str(value, "call_id") or get_str(call.args, "toolCallId")
        return self._called(call, key, value.get("subtype"))

    def _called(self, call: Call, key: str | None, subtype: Any) -> Events:
        events = self._restart()
        done = subtype == "completed" or (subtype != "started" and call.ended)
        if not done:
            if key is None:
                return events + self._tools.start({"name": call.name, "input": call.args})
            self._tools.start_call(key, call.name, call.args, events)
            return events
        if call.refused is not None:
            self._refused.add(call.refused)
        name, args = ("tool", None) if key is None else (call.name, call.args)
        ended: Events = []
        self._tools.end_call(ended, key, call.output, call.status, call.duration_ms, name, args)
        return events + ended if events else ended

    # -- the CLI's own words

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
        """`result` is all messages of the run joined without anything between them."""
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
            told = (text if new else "") or get_str(value, "error", "message") or subtype
            kind = classify(told)
            return [*events, *_limit(told, kind), meta.result(ok=False, reason=told, error_class=kind)]
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
    """Counts of this invocation, also after a resume; `inputTokens` leave out what came from or went to the cache."""
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
