"""The schema of Claude Code's stream-json, which other agents and wrappers speak as well.

A subclass adds what is its own: types to `handlers`, subtypes in `on_system`, its way to say how a tool ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ralph.transcripts import meta
from ralph.transcripts.base import Capabilities
from ralph.transcripts.classify import retry_after
from ralph.transcripts.events import Meta, Tag, Text, ToolStatus, UsageEvent
from ralph.transcripts.json_lines import get_count, get_dict, get_float, get_int, get_list, get_str
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.stream_json.errors import error_class, reset_time
from ralph.transcripts.stream_json.tools import FAIL, OK, text_of
from ralph.transcripts.stream_json.usual import QUIET_SUBTYPES, SYNTHETIC, Events, UsualLines

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SYNTHETIC", "ClaudeLikeAdapter", "Events", "is_failure"]

_NO_CONTENT = "(no content)"
_ASKING = frozenset({"AskUserQuestion", "ask_user_question"})
_NOISE = frozenset(
    {
        "control_request",
        "control_response",
        "keep_alive",
        "ping",
        "prompt_suggestion",
        "streamlined_text",
        "streamlined_tool_use_summary",
        "summary",
        "tool_progress",
        "tool_use_summary",
    }
)
_NOISE_PREFIXES = ("task_", "hook_")
#: The CLI's own words in place of a tool's output.
_REFUSED, _NOT_GRANTED = "Claude requested permissions to ", ", but you haven't granted it yet."


class ClaudeLikeAdapter(UsualLines):
    capabilities = Capabilities(
        supports_roles=True, supports_tool_events=True, supports_usage_events=True, supports_prompt_hiding=True
    )

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self.ended = False
        self._said_by_cli = ""
        self._not_granted = ""
        self._resets_at: float | None = None
        self.handlers: dict[str, Callable[[dict[str, Any]], Events]] = {
            "assistant": self.on_assistant,
            "user": self.on_user,
            "stream_event": self._stream_event,
            "content_block_delta": self._bare_event,
            "system": self._system,
            "result": self.on_result,
            "rate_limit_event": self._rate_limit,
            "error": self._error,
            "message": lambda value: self.on_assistant({"message": value}),
            "message_start": self._bare_event,
            "content_block_start": self._bare_event,
            "content_block_stop": self._bare_event,
            "message_delta": self._bare_event,
            "message_stop": self._message_stop,
            "auth_status": self._auth_status,
        }

    # -- lines

    def recognises(self, value: dict[str, Any]) -> bool:
        kind = value.get("type")
        if not isinstance(kind, str):
            return False
        if "session_id" in value or "uuid" in value:
            return True
        return (self.certain or not self.spoken) and (kind in self.handlers or kind in _NOISE)

    def on_object(self, value: dict[str, Any]) -> Events:
        kind = value.get("type")
        handler = self.handlers.get(kind, self._other) if type(kind) is str else self._other
        if self.session is not None:
            return handler(value)
        self.structured = True
        self.session = get_str(value, "session_id")
        started: Events = [meta.session(self.session, get_str(value, "model"))] if self.session else []
        return started + handler(value)

    def _other(self, value: dict[str, Any]) -> Events:
        kind = value.get("type")
        return [] if isinstance(kind, str) and kind in _NOISE else [meta.unknown(value)]

    def flush(self) -> Events:
        events = super().flush() + self.stream.close()
        if self.structured and not self.ended:
            message, kind = self.trouble or ("", ErrorClass.FAILED)
            end = "the output ends without a result"
            events.append(meta.error(f"{end}, after: {message}" if message else end, kind))
        return events

    # -- messages

    def on_assistant(self, value: dict[str, Any]) -> Events:
        message = value.get("message")
        if type(message) is not dict:
            return [meta.unknown(value)]
        content = message.get("content")
        if type(content) is not list:
            content = [{"type": "text", "text": content}] if isinstance(content, str) else []
        model = message.get("model")
        synthetic = model == SYNTHETIC or value.get("is_api_error_message") is True
        nested = value.get("parent_tool_use_id") is not None
        if not synthetic:
            self.trouble = None
            self.usage.message(message)
            if not nested and type(model) is str:
                self.model = model
        events: Events = []
        for block in content:
            kind = block.get("type") if type(block) is dict else None
            if kind == "text":
                text = block.get("text")
                if type(text) is str and text:
                    events += self.words(text, value, synthetic=synthetic, nested=nested)
            elif kind == "thinking":
                thought = block.get("thinking")
                if type(thought) is str and thought:
                    events += [Text(Tag.THINK, thought)] if nested else self.stream.thoughts.full(thought)
            elif kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
                if not nested:
                    events += self.stream.close()
                events += self.tools.start(block)
            elif isinstance(kind, str) and kind.endswith("tool_result"):
                events += self._tool_result(block, value)
            elif kind != "redacted_thinking":
                events.append(meta.unknown(block))
        return events

    def words(self, text: str, value: dict[str, Any], *, synthetic: bool, nested: bool) -> Events:
        if synthetic:
            self._said_by_cli = text
            kind = _reported_class(text, value, get_str(value, "error"))
            self.trouble = (text, kind)
            return [
                *self.stream.close(),
                Text(Tag.SYS, text),
                *self._limit_end(text, kind, get_str(value, "timestamp")),
            ]
        if nested or text == _NO_CONTENT:
            return [Text(Tag.SYS, text)]
        return self.stream.words.full(text)

    def is_plain(self, text: str) -> bool:
        return text != _NO_CONTENT

    def on_user(self, value: dict[str, Any]) -> Events:
        content = get_dict(value, "message").get("content", value.get("content"))
        nested = value.get("parent_tool_use_id") is not None
        blocks = content if type(content) is list else [{"type": "text", "text": content}]
        events: Events = []
        for block in blocks:
            kind = block.get("type") if type(block) is dict else None
            if type(kind) is str and kind.endswith("tool_result"):
                events += self._tool_result(block, value, alone=len(blocks) == 1)
            else:
                events += self.told(text_of(block), nested=nested)
        return events

    def told(self, text: str, *, nested: bool) -> Events:
        """What anybody but the agent says to it begins a new message; an interruption is the CLI's word."""
        if not text:
            return []
        tag = Tag.SYS if nested or text.startswith("[Request interrupted") else Tag.PROMPT
        return [*self.stream.close(), Text(tag, text)]

    def _tool_result(self, block: dict[str, Any], value: dict[str, Any], *, alone: bool = True) -> Events:
        text = text_of(block.get("content"))
        details = get_dict(value, "tool_use_result") if alone else {}
        failed = bool(block.get("is_error")) or details.get("interrupted") is True
        status, text = self.tool_status(text, failed=failed)
        duration = get_count(details, "durationMs", "totalDurationMs", "duration_ms") if details else None
        return self.tools.end(get_str(block, "tool_use_id", "id"), text, status, duration)

    def tool_status(self, text: str, *, failed: bool) -> tuple[ToolStatus, str]:
        """How a call ended, and its output. Success is told by the absence of `is_error`."""
        if failed and text.startswith(_REFUSED) and text.endswith(_NOT_GRANTED):
            self._not_granted = text
        return (FAIL if failed else OK), text

    # -- fragments

    def _stream_event(self, value: dict[str, Any]) -> Events:
        if value.get("parent_tool_use_id") is not None:
            return []  # a subagent's fragments: its whole messages follow
        event = value.get("event")
        if type(event) is not dict:
            return [meta.unknown(value)]
        if event.get("type") != "content_block_delta":
            return self._bare_event(event)
        self.trouble = None
        return self.stream.delta(event)

    def _bare_event(self, value: dict[str, Any]) -> Events:
        if value.get("type") == "error":
            message, kind = _error_of(value)
            return [meta.error(message, kind, fatal=False)]  # the CLI will try again, or say that it gives up
        events = self.stream.feed(value)
        if events:
            self.trouble = None
        return events

    def _message_stop(self, value: dict[str, Any]) -> Events:
        """The end of a bare stream; some wrappers put the whole message into it."""
        events = self.stream.feed(value)
        if isinstance(value.get("message"), dict):
            events += self.on_assistant(value)
        self.ended = True
        return events + self.stream.close()

    # -- the CLI's own words

    def _system(self, value: dict[str, Any]) -> Events:
        subtype = value.get("subtype")
        if not isinstance(subtype, str):
            return self.on_system(value, "")
        return [] if subtype in QUIET_SUBTYPES else self.on_system(value, subtype)

    def on_system(self, value: dict[str, Any], subtype: str) -> Events:
        match subtype:
            case "init":
                self.model = get_str(value, "model") or self.model
                session = get_str(value, "session_id")
                if session and session != self.session:
                    self.session = session
                    return [meta.session(session, self.model)]
                return []
            case "api_retry":
                return self._api_retry(value)
            case "permission_denied":
                message = get_str(value, "message") or f"{get_str(value, 'tool_name') or 'a tool'} was refused"
                return [meta.error(message, ErrorClass.PERMISSION_DENIED, fatal=False)]
            case "compact_boundary":
                return [Text(Tag.SYS, "the conversation was compacted")]
            case _ if subtype.startswith(_NOISE_PREFIXES):
                return []
        return [meta.unknown(value)]

    def _api_retry(self, value: dict[str, Any]) -> Events:
        name, status = get_str(value, "error"), get_int(value, "error_status")
        message = " ".join(str(part) for part in (status, name) if part is not None) or "the request failed"
        kind = error_class("", name, status)
        self.trouble = (message, kind)
        attempt, delay = get_count(value, "attempt"), get_count(value, "retry_delay_ms")
        return [meta.retry(message, kind, attempt=attempt, delay_ms=delay)]

    def _rate_limit(self, value: dict[str, Any]) -> Events:
        info = get_dict(value, "rate_limit_info")
        self._resets_at = get_float(info, "resetsAt", "resets_at", "reset")
        if (get_str(info, "status") or "allowed").startswith("allowed"):
            return []  # said with every turn; it matters only if the limit is hit
        self.trouble = ("the limit is reached", ErrorClass.RATE_LIMITED)
        return [meta.rate_limit(self._resets_at, get_str(info, "rateLimitType"))]

    def _limit_end(self, message: str, kind: ErrorClass, timestamp: str | None) -> Events:
        if kind is not ErrorClass.RATE_LIMITED:
            return []
        end = reset_time(message, timestamp) or self._resets_at
        wait = None if end else retry_after(message)
        return [meta.rate_limit(end, message, retry_after=wait)] if end or wait else []

    def _auth_status(self, value: dict[str, Any]) -> Events:
        problem = get_str(value, "error")
        return [meta.error(problem, ErrorClass.AUTH)] if problem else []

    def _error(self, value: dict[str, Any]) -> Events:
        message, kind = _error_of(value)
        self.trouble = (message, kind)
        return [*self.stream.close(), meta.error(message, kind), *self._limit_end(message, kind, None)]

    # -- the last word

    def on_result(self, value: dict[str, Any]) -> Events:
        events = self.stream.close()
        self.ended = True
        said = self.stream.words.said
        result = value.get("result")
        text = result if isinstance(result, str) else get_str(result, "output", "text", "result") or ""
        new = bool(text) and not said.repeats(text)
        failed = is_failure(value)
        if new and failed:
            if text != self._said_by_cli:
                events.append(Text(Tag.SYS, text))
        elif new:
            tag = Tag.SYS if text == _NO_CONTENT else Tag.AI
            if tag is Tag.AI:
                said.add(text)
            events.append(Text(tag, text))
        usage = self.usage.result(value, self.model or self.stream.model)
        if usage is not None:
            events.append(UsageEvent(usage))
        if not failed:
            return events + self._good_result(value)
        reason, kind = self.failure(value, text if new else "")
        if text != self._said_by_cli:
            events += self._limit_end(reason, kind, get_str(value, "timestamp"))
        return [*events, _result(value, ok=False, reason=reason, kind=kind)]

    def _good_result(self, value: dict[str, Any]) -> Events:
        denials = [
            d if isinstance(d, str) else get_str(d, "tool_name") or "a tool"
            for d in get_list(value, "permission_denials")
        ]
        if not denials and self._not_granted and "permission_denials" not in value:  # 1.0.60 does not list them
            return [_result(value, ok=False, reason=self._not_granted, kind=ErrorClass.PERMISSION_DENIED)]
        if not denials:
            return [_result(value, ok=True)]
        names = ", ".join(dict.fromkeys(denials))
        if all(name in _ASKING for name in denials):
            return [_result(value, ok=False, reason="the agent asked a question", kind=ErrorClass.QUESTION)]
        return [_result(value, ok=False, reason=f"refused: {names}", kind=ErrorClass.PERMISSION_DENIED)]

    def failure(self, value: dict[str, Any], text: str) -> tuple[str, ErrorClass]:
        """Why a failed run failed: what the CLI says (`text` is not the agent's), or what it said before."""
        if "max_turns" in (get_str(value, "subtype") or ""):
            told = next((e for e in get_list(value, "errors") if isinstance(e, str)), "")
            return told or "the maximum number of turns was reached", ErrorClass.FAILED
        errors = [text_of(e) or get_str(e, "message") or "" for e in get_list(value, "errors")]
        message, kind = _error_of(value) if value.get("error") else ("", ErrorClass.FAILED)
        message = text or message or "\n".join(e for e in errors if e)
        if message:
            told = _reported_class(message, value, get_str(value, "api_error_type"))
            kind = told if told is not ErrorClass.FAILED else kind
        if self.trouble is not None and (kind is ErrorClass.FAILED or not message):
            before, kind = self.trouble
            message = message or before
        return message or get_str(value, "subtype") or "the run failed", kind


def is_failure(value: dict[str, Any]) -> bool:
    """Older releases say `is_error: false` beside an error subtype, and `success` beside `is_error: true`."""
    subtype = get_str(value, "subtype") or ""
    aborted = (get_str(value, "terminal_reason") or "").startswith("aborted")
    return bool(value.get("is_error")) or subtype.startswith("error") or bool(value.get("error")) or aborted


def _reported_class(message: str, value: dict[str, Any], name: str | None) -> ErrorClass:
    """By what newer releases put beside an error's text, and by the text."""
    if get_str(value, "api_error") == "connection_failed":
        return ErrorClass.FAILED  # they call that a server's error, too, but no server answered
    if (ended := get_str(value, "terminal_reason")) in ("prompt_too_long", "blocking_limit"):
        name = ended
    return error_class(message, name, get_int(value, "api_error_status"))


def _error_of(value: dict[str, Any]) -> tuple[str, ErrorClass]:
    """An `error` that is a string, or an object as the provider's API has it."""
    inner = value.get("error")
    if isinstance(inner, str) and inner:
        return inner, error_class(inner, inner)
    name = get_str(inner, "type", "code")
    message = get_str(inner, "message") or get_str(value, "message") or name or "the agent reported an error"
    return message, error_class(message, name, get_int(inner, "status", "code"))


def _result(value: dict[str, Any], *, ok: bool, reason: str | None = None, kind: ErrorClass | None = None) -> Meta:
    return meta.result(
        ok=ok,
        reason=reason,
        error_class=kind,
        subtype=get_str(value, "subtype"),
        duration_ms=get_count(value, "duration_ms"),
        num_turns=get_count(value, "num_turns"),
    )
