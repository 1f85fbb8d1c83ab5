"""Claude Code's stream-json format, which other agents and wrappers use as well."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

from ralph.transcripts import meta
from ralph.transcripts.base import Capabilities
from ralph.transcripts.classify import retry_after
from ralph.transcripts.events import Meta, Tag, Text, ToolStatus, TranscriptEvent, UsageEvent
from ralph.transcripts.json_lines import (
    JsonAdapter,
    get_count,
    get_dict,
    get_float,
    get_int,
    get_list,
    get_str,
    is_not_text,
)
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.stream_json.errors import Failure, error_class, read_error, reported_class, reset_time
from ralph.transcripts.stream_json.stream import TOOL_USES, MessageStream
from ralph.transcripts.stream_json.tools import ToolCalls, text_of
from ralph.transcripts.stream_json.usage import RunUsage

if TYPE_CHECKING:
    from collections.abc import Callable

Events: TypeAlias = list[TranscriptEvent]

#: The model that Claude Code names when it writes a message in the agent's place.
_SYNTHETIC = "<synthetic>"
_NO_CONTENT = "(no content)"
_ASKING_TOOLS = frozenset({"AskUserQuestion", "ask_user_question"})
_IGNORED_TYPES = frozenset(
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
_IGNORED_SUBTYPES = frozenset({"status", "thinking_tokens", "session_state_changed", "files_persisted"})
_IGNORED_SUBTYPE_PREFIXES = ("task_", "hook_")


class Speaker(StrEnum):
    """Who wrote an assistant message."""

    AGENT = "agent"
    SUBAGENT = "subagent"
    CLI = "cli"


class ClaudeLikeAdapter(JsonAdapter):
    """An agent's own adapter adds event types to `handlers` and overrides the public methods where it differs."""

    capabilities = Capabilities(
        supports_roles=True, supports_tool_events=True, supports_usage_events=True, supports_prompt_hiding=True
    )

    def __init__(self, prompt: str | None = None, usage: RunUsage | None = None) -> None:
        super().__init__(prompt)
        self.tools = ToolCalls()
        self.usage = usage or RunUsage()
        self.stream = MessageStream(self.tools, self.usage)
        self.session: str | None = None
        self.model: str | None = None
        #: whether the run's result has come
        self.ended = False
        #: the last error or retry that the CLI reported, until the agent makes progress again
        self.last_error: Failure | None = None
        self._resets_at: float | None = None
        self.handlers: dict[str, Callable[[dict[str, Any]], Events]] = {
            "system": self._system,
            "assistant": self.on_assistant,
            "user": self.on_user,
            "result": self.on_result,
            "error": self._error,
            "rate_limit_event": self._rate_limit,
            "auth_status": self._auth_status,
            "message": lambda value: self.on_assistant({"message": value}),
            "stream_event": self._stream_event,
            # The provider's events without the envelope of `stream_event`, as some wrappers print them.
            "message_start": self.on_event,
            "content_block_start": self.on_event,
            "content_block_delta": self.on_event,
            "content_block_stop": self.on_event,
            "message_delta": self.on_event,
            "message_stop": self._message_stop,
        }

    # -- lines

    def recognises(self, value: dict[str, Any]) -> bool:
        kind = value.get("type")
        if not isinstance(kind, str):
            return False
        if "session_id" in value or "uuid" in value:
            return True
        return (self.certain or not self.spoken) and (kind in self.handlers or kind in _IGNORED_TYPES)

    def on_object(self, value: dict[str, Any]) -> Events:
        self.structured = True
        kind = value.get("type")
        handler = self.handlers.get(kind, self._other) if isinstance(kind, str) else self._other
        if self.session is None and (session := get_str(value, "session_id")):
            self.session = session
            return [meta.session(session, get_str(value, "model")), *handler(value)]
        return handler(value)

    def _other(self, value: dict[str, Any]) -> Events:
        return [] if get_str(value, "type") in _IGNORED_TYPES else [meta.unknown(value)]

    def flush(self) -> Events:
        events = super().flush() + self.stream.close()
        if self.structured and not self.ended:
            message, kind = self.last_error or Failure("")
            end = "the output ends without a result"
            events.append(meta.error(f"{end}, after: {message}" if message else end, kind))
        return events

    # -- messages

    def on_assistant(self, value: dict[str, Any]) -> Events:
        message = value.get("message")
        if not isinstance(message, dict):
            return [meta.unknown(value)]
        speaker = _speaker(value, message)
        used: Events = []
        if speaker is not Speaker.CLI:
            self.last_error = None
            model = get_str(message, "model")
            if speaker is Speaker.AGENT:
                self.model = model or self.model
                used = self.usage.message(message, model)
            else:
                used = self.usage.subagent(message, model)
        content = message.get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        events = [event for block in blocks for event in self._block(block, value, speaker)]
        return events + used if used else events

    def _block(self, block: Any, value: dict[str, Any], speaker: Speaker) -> Events:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind in ("text", "thinking") and is_not_text(block, kind):
            return [meta.unknown(block)]
        if kind == "text":
            text = get_str(block, "text")
            return self.words(text, value, speaker) if text else []
        if kind == "thinking":
            thought = get_str(block, "thinking") or ""
            if speaker is Speaker.SUBAGENT:
                return [Text(Tag.THINK, thought)] if thought else []
            return self.stream.thoughts.full(thought) if thought else []
        if kind in TOOL_USES:
            before = [] if speaker is Speaker.SUBAGENT else self.stream.close()
            return before + self.tools.start_block(block)
        if isinstance(kind, str) and kind.endswith("tool_result"):
            return self._tool_result(block, value)
        return [] if kind == "redacted_thinking" else [meta.unknown(block)]

    def words(self, text: str, value: dict[str, Any], speaker: Speaker) -> Events:
        """The events of a text block. `value` is the whole line."""
        if speaker is Speaker.CLI:
            kind = reported_class(text, value, get_str(value, "error"))
            self.last_error = Failure(text, kind)
            limit = self.limit_events(text, kind, get_str(value, "timestamp"))
            return [*self.stream.close(), Text(Tag.SYS, text), *limit]
        if speaker is Speaker.SUBAGENT or text == _NO_CONTENT:
            return [Text(Tag.SYS, text)]
        return self.stream.words.full(text)

    def on_user(self, value: dict[str, Any]) -> Events:
        content = get_dict(value, "message").get("content", value.get("content"))
        nested = value.get("parent_tool_use_id") is not None
        blocks = content if isinstance(content, list) else [content]
        events: Events = []
        for block in blocks:
            if isinstance(block, dict) and (get_str(block, "type") or "").endswith("tool_result"):
                events += self._tool_result(block, value, alone=len(blocks) == 1)
            elif text := text_of(block):
                cli = nested or text.startswith("[Request interrupted")
                events += [*self.stream.close(), Text(Tag.SYS if cli else Tag.PROMPT, text)]
        return events

    def _tool_result(self, block: dict[str, Any], value: dict[str, Any], *, alone: bool = True) -> Events:
        # `tool_use_result` belongs to the line, so it describes a result only if there is no other one.
        details = get_dict(value, "tool_use_result") if alone else {}
        failed = bool(block.get("is_error")) or details.get("interrupted") is True
        status, text = self.tool_status(text_of(block.get("content")), failed=failed)
        duration = get_count(details, "durationMs", "totalDurationMs", "duration_ms")
        return self.tools.end(get_str(block, "tool_use_id", "id"), text, status, duration)

    def tool_status(self, text: str, *, failed: bool) -> tuple[ToolStatus, str]:
        """How a call ended, and its output. `failed` is what the CLI reports."""
        return (ToolStatus.FAIL if failed else ToolStatus.OK), text

    # -- streaming events

    def _stream_event(self, value: dict[str, Any]) -> Events:
        if value.get("parent_tool_use_id") is not None:
            return []  # a subagent's fragments; its whole messages follow
        event = value.get("event")
        return self.on_event(event) if isinstance(event, dict) else [meta.unknown(value)]

    def on_event(self, event: dict[str, Any]) -> Events:
        kind = event.get("type")
        if kind == "error":
            return [meta.error(*read_error(event), fatal=False)]  # the CLI retries, or reports that it gives up
        events = self.stream.feed(event)
        if kind == "content_block_delta" or any(type(each) is not UsageEvent for each in events):
            self.last_error = None
        return events

    def _message_stop(self, value: dict[str, Any]) -> Events:
        """The end of a bare stream. Some wrappers add the whole message to it."""
        events = self.stream.feed(value)
        if isinstance(value.get("message"), dict):
            events += self.on_assistant(value)
        self.ended = True
        return events + self.stream.close()

    # -- the CLI's own messages

    def _system(self, value: dict[str, Any]) -> Events:
        subtype = get_str(value, "subtype") or ""
        ignored = subtype in _IGNORED_SUBTYPES or subtype.startswith(_IGNORED_SUBTYPE_PREFIXES)
        return [] if ignored else self.on_system(value, subtype)

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
        return [meta.unknown(value)]

    def _api_retry(self, value: dict[str, Any]) -> Events:
        name, status = get_str(value, "error"), get_int(value, "error_status")
        message = " ".join(str(part) for part in (status, name) if part is not None) or "the request failed"
        kind = error_class("", name, status)
        self.last_error = Failure(message, kind)
        attempt, delay = get_count(value, "attempt"), get_count(value, "retry_delay_ms")
        return [meta.retry(message, kind, attempt=attempt, delay_ms=delay)]

    def _rate_limit(self, value: dict[str, Any]) -> Events:
        info = get_dict(value, "rate_limit_info")
        self._resets_at = get_float(info, "resetsAt", "resets_at", "reset")
        if (get_str(info, "status") or "allowed").startswith("allowed"):
            return []  # sent with every turn; it matters only once the limit is hit
        self.last_error = Failure("the limit is reached", ErrorClass.RATE_LIMITED)
        return [meta.rate_limit(self._resets_at, get_str(info, "rateLimitType"))]

    def limit_events(self, message: str, kind: ErrorClass, timestamp: str | None = None) -> Events:
        """When the rate limit that a message reports ends, if that is known."""
        if kind is not ErrorClass.RATE_LIMITED:
            return []
        end = reset_time(message, timestamp) or self._resets_at
        wait = None if end else retry_after(message)
        return [meta.rate_limit(end, message, retry_after=wait)] if end or wait else []

    def _auth_status(self, value: dict[str, Any]) -> Events:
        message = get_str(value, "error")
        return [meta.error(message, ErrorClass.AUTH)] if message else []

    def _error(self, value: dict[str, Any]) -> Events:
        self.last_error = error = read_error(value)
        return [*self.stream.close(), meta.error(*error), *self.limit_events(*error)]

    # -- the result

    def on_result(self, value: dict[str, Any]) -> Events:
        events = self.stream.close()
        self.ended = True
        result = value.get("result")
        text = result if isinstance(result, str) else get_str(result, "output", "text", "result") or ""
        if self.stream.words.said.repeats(text):
            text = ""
        failed = is_failure(value)
        reported = self.last_error.message if self.last_error else ""
        if text and failed and text != reported:
            events.append(Text(Tag.SYS, text))
        elif text and not failed:
            events += self._final_words(text)
        usage = self.usage.result(value, self.model or self.stream.model)
        if usage is not None:
            events.append(UsageEvent(usage))
        if not failed:
            return [*events, self.success(value)]
        reason, kind = self.failure(value, text)
        if reason != reported:
            events += self.limit_events(reason, kind, get_str(value, "timestamp"))
        return [*events, result_meta(value, reason, kind)]

    def _final_words(self, text: str) -> Events:
        """Words that only the result has."""
        if text == _NO_CONTENT:
            return [Text(Tag.SYS, text)]
        self.stream.words.said.add(text)
        return [Text(Tag.AI, text)]

    def success(self, value: dict[str, Any]) -> Meta:
        """The outcome of a result that is not reported as a failure."""
        denials = [
            denial if isinstance(denial, str) else get_str(denial, "tool_name") or "a tool"
            for denial in get_list(value, "permission_denials")
        ]
        if not denials:
            return result_meta(value)
        if _ASKING_TOOLS.issuperset(denials):
            return result_meta(value, "the agent asked a question", ErrorClass.QUESTION)
        return result_meta(value, f"refused: {', '.join(dict.fromkeys(denials))}", ErrorClass.PERMISSION_DENIED)

    def failure(self, value: dict[str, Any], text: str) -> Failure:
        """Why a run failed, from its result or from the last error before that. `text` is the CLI's, if not empty."""
        if "max_turns" in (get_str(value, "subtype") or ""):
            reason = next((e for e in get_list(value, "errors") if isinstance(e, str)), "")
            return Failure(reason or "the maximum number of turns was reached")
        errors = [text_of(error) or get_str(error, "message") or "" for error in get_list(value, "errors")]
        message, kind = read_error(value) if value.get("error") else Failure("")
        message = text or message or "\n".join(error for error in errors if error)
        if message:
            reported = reported_class(message, value, get_str(value, "api_error_type"))
            kind = reported if reported is not ErrorClass.FAILED else kind
        if self.last_error is not None and (kind is ErrorClass.FAILED or not message):
            message, kind = message or self.last_error.message, self.last_error.error_class
        return Failure(message or get_str(value, "subtype") or "the run failed", kind)


def is_failure(value: dict[str, Any]) -> bool:
    """Whether a result is a failure. Some releases set `is_error`, others only `subtype`, and they may contradict."""
    subtype = get_str(value, "subtype") or ""
    aborted = (get_str(value, "terminal_reason") or "").startswith("aborted")
    return bool(value.get("is_error")) or subtype.startswith("error") or bool(value.get("error")) or aborted


def result_meta(value: dict[str, Any], reason: str | None = None, kind: ErrorClass | None = None) -> Meta:
    """The `meta` event of a result: a good one, unless it has an error class."""
    return meta.result(
        ok=kind is None,
        reason=reason,
        error_class=kind,
        subtype=get_str(value, "subtype"),
        duration_ms=get_count(value, "duration_ms"),
        num_turns=get_count(value, "num_turns"),
    )


def _speaker(value: dict[str, Any], message: dict[str, Any]) -> Speaker:
    if message.get("model") == _SYNTHETIC or value.get("is_api_error_message") is True:
        return Speaker.CLI
    return Speaker.AGENT if value.get("parent_tool_use_id") is None else Speaker.SUBAGENT
