"""pi: `--mode json` and `--mode rpc` print one event per line; text mode prints the last message only.

In JSON the exit code says nothing: the `stopReason` of the last assistant message decides. New versions say at
`agent_end` whether they will retry, and at `agent_settled` that the run is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ralph.agents.pi.errors import PiError, explain, on_stderr
from ralph.transcripts import meta
from ralph.transcripts.base import Capabilities
from ralph.transcripts.errors import CUT
from ralph.transcripts.events import Meta, Tag, Text, ToolStatus, TranscriptEvent, Usage, UsageEvent
from ralph.transcripts.json_lines import JsonAdapter, get_count, get_dict, get_float, get_list, get_str, strip_escapes
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.repeats import Streamed
from ralph.transcripts.tool_calls import ToolCalls, output_text

if TYPE_CHECKING:
    from collections.abc import Callable

_GOOD = frozenset({"stop", "toolUse"})
_BAD = {
    "length": "the model's answer was cut at its output limit",
    "aborted": "the run was aborted",
    "error": "the model's answer ended in an error",
}


class PiAdapter(JsonAdapter):
    name = "pi"
    capabilities = Capabilities(
        supports_roles=True, supports_tool_events=True, supports_usage_events=True, supports_prompt_hiding=True
    )

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._words = Streamed(Tag.AI)
        self._thoughts = Streamed(Tag.THINK)
        self._tools = ToolCalls()
        self._session: str | None = None
        self._stop: str | None = None
        self._failure: PiError | None = None
        self._pending: Meta | None = None  # the verdict, as long as a retry may follow
        self._retrying: PiError | None = None
        self._ended = False
        self._reported = False  # a fatal error that is not part of a message
        self._handlers: dict[str, Callable[[dict[str, Any]], list[TranscriptEvent]]] = {
            "session": lambda value: self._begin(get_str(value, "id"), None),
            "agent_start": self._agent_start,
            "message_start": lambda _: self._thoughts.restart() + self._words.restart(),
            "message_update": self._message_update,
            "message_end": self._message_end,
            "tool_execution_start": self._tool_start,
            "tool_execution_end": self._tool_end,
            "agent_end": self._agent_end,
            "agent_settled": self._settled,
            "auto_retry_start": self._retry,
            "summarization_retry_scheduled": self._retry,
            "compaction_start": self._compaction,
            "compaction_end": self._compaction,
            "auto_compaction_start": self._compaction,
            "auto_compaction_end": self._compaction,
            "response": self._response,
            "extension_ui_request": _extension,
            "extension_error": _extension,
            # Other events carry the same information.
            "turn_start": _ignore,
            "turn_end": _ignore,
            "tool_execution_update": _ignore,
            "entry_appended": _ignore,
            "queue_update": _ignore,
            "session_info_changed": _ignore,
            "thinking_level_changed": _ignore,
            "auto_retry_end": _ignore,
            "summarization_retry_attempt_start": _ignore,
            "summarization_retry_finished": _ignore,
        }

    def recognises(self, value: dict[str, Any]) -> bool:
        match value:
            case {"type": "agent_start" | "turn_start" | "agent_end" | "agent_settled" | "auto_retry_start"}:
                return True
            case {"type": "session", "id": _}:
                return "version" in value or "cwd" in value
            case {"type": "message_start" | "message_end", "message": {}}:
                return True
            case {"type": "response", "command": _} | {"type": "message_update", "assistantMessageEvent": _}:
                return True
            case {"type": "tool_execution_start" | "tool_execution_end", "toolCallId": _}:
                return True
        return False

    def on_object(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self.structured = True
        kind = value.get("type")
        handler = self._handlers.get(kind) if isinstance(kind, str) else None
        return [meta.unknown(value)] if handler is None else handler(value)

    def on_text(self, line: str) -> list[TranscriptEvent]:
        # A terminal merges stderr with stdout.
        return self.feed_stderr(line) if self.structured else [Text(Tag.AI, line)]

    def feed_stderr(self, line: str) -> list[TranscriptEvent]:
        events: list[TranscriptEvent] = [Text(Tag.SYS, line)]
        failure = on_stderr(strip_escapes(line))
        if failure is not None:
            self._reported = True
            events += [*failure.limit(), meta.error(failure.message, failure.error_class)]
        return events

    def flush(self) -> list[TranscriptEvent]:
        events = [*super().flush(), *self._flush_words()]
        if not self.structured or self._ended:
            return events
        if self._pending is not None:
            events += self._settled({})
        elif self._retrying is not None:
            events.append(meta.error(f"{self._retrying.message} (it was still retrying)", self._retrying.error_class))
        elif not self._reported:
            events.append(meta.error(CUT))
        return events

    # -- messages

    def _message_update(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        event = value.get("assistantMessageEvent")
        if not isinstance(event, dict):
            return [meta.unknown(value)]
        match event.get("type"):
            case "text_delta":
                return self._words.fragment(get_str(event, "delta") or "")
            case "thinking_delta":
                return self._thoughts.fragment(get_str(event, "delta") or "")
            case "text_end":
                return self._words.stop()
            case "thinking_end":
                return self._thoughts.stop()
        return []  # starts of blocks; and calls, which are complete when they run

    def _message_end(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        message = get_dict(value, "message")
        match message.get("role"):
            case "assistant":
                return self._assistant(message)
            case "user":
                return [*self._flush_words(), Text(Tag.PROMPT, _content(message.get("content")))]
            case "toolResult":
                return self._tool_end({**message, "result": message})
            case "system":
                return []
            case str():  # an extension, a shell command of the user or a summary
                text = _content(message.get("content")) or get_str(message, "summary", "output")
                return [Text(Tag.SYS, text) if text else meta.unknown(value)]
        return [meta.unknown(value)]

    def _assistant(self, message: dict[str, Any]) -> list[TranscriptEvent]:
        events: list[TranscriptEvent] = []
        content = message.get("content")
        for block in content if isinstance(content, list) else [content]:
            match block:
                case {"type": "thinking", "thinking": str(text)}:
                    events += self._thoughts.full(text)
                case str(text) | {"type": "text", "text": str(text)} if text:
                    events += self._words.full(text)
        self._retrying = None
        self._judge(message)
        return [*events, *self._thoughts.restart(), *self._words.restart(), *_usage(message)]

    def _judge(self, message: Any) -> None:
        """Remembers how the latest answer ended."""
        self._stop = get_str(message, "stopReason")
        error = get_str(message, "errorMessage")
        self._failure = explain(error) if error is not None and self._stop not in _GOOD else None

    def _flush_words(self) -> list[TranscriptEvent]:
        return [*self._thoughts.stop(), *self._words.stop()]

    # -- tools

    def _tool_start(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        call = get_str(value, "toolCallId")
        if call is None:
            return [meta.unknown(value)]
        arguments = value.get("args")
        name = get_str(value, "toolName") or "tool"
        return self._tools.start(call, name, arguments if isinstance(arguments, dict) else None)

    def _tool_end(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        """The end of a call, or the message with its result, which follows and is a copy."""
        events = self._tool_start(value)
        call, result = get_str(value, "toolCallId"), value.get("result")
        if call is None:
            return events
        output = _content(result.get("content") if isinstance(result, dict) else result)
        failed = value.get("isError")
        status = ToolStatus.FAIL if failed is True else ToolStatus.OK if failed is False else ToolStatus.UNKNOWN
        return events + self._tools.end(call, output, status, duration_ms=get_count(value, "durationMs"))

    # -- the run

    def _begin(self, session: str | None, model: str | None) -> list[TranscriptEvent]:
        if session is None or self._session is not None:
            return []
        self._session = session
        return [meta.session(session, model)]

    def _agent_start(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self._pending = self._stop = self._failure = None
        self._ended = False
        return []

    def _agent_end(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        if self._stop is None:
            answers = (m for m in reversed(get_list(value, "messages")) if get_str(m, "role") == "assistant")
            self._judge(next(answers, None))
        self._pending = self._verdict()
        # Versions that report `willRetry` also report when they have settled. The others never continue after a good
        # end, but they may retry after a bad one: wait for the next line.
        if "willRetry" not in value and self._pending.meta["ok"]:
            return self._settled(value)
        return self._flush_words()

    def _settled(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        if self._ended:
            return []
        self._ended = True
        if value.get("aborted") is True and self._failure is None:  # since 1.x; the last answer may be complete
            self._stop, self._pending = "aborted", None
        result, self._pending = self._pending or self._verdict(), None
        limit = self._failure.limit() if self._failure is not None else []
        return [*self._flush_words(), *limit, result]

    def _verdict(self) -> Meta:
        if self._failure is not None:
            return meta.result(ok=False, reason=self._failure.message, error_class=self._failure.error_class)
        if self._stop is None or self._stop in _GOOD:
            return meta.result(ok=True, reason=self._stop)
        reason = _BAD.get(self._stop, f"the model's answer ended with '{self._stop}'")
        return meta.result(ok=False, reason=reason, error_class=ErrorClass.FAILED)

    def _retry(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        failure = explain(get_str(value, "errorMessage") or _BAD["error"])
        if value.get("type") == "auto_retry_start":  # if a summary fails, the run continues or reports its own error
            self._retrying = failure
        attempt, delay = get_count(value, "attempt"), get_count(value, "delayMs")
        return [meta.retry(failure.message, failure.error_class, attempt=attempt, delay_ms=delay)]

    def _compaction(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        error = get_str(value, "errorMessage")
        if error is not None:
            failure = explain(error)
            return [meta.error(f"compaction failed: {failure.message}", failure.error_class, fatal=False)]
        if str(value.get("type")).endswith("_start"):
            return [Text(Tag.SYS, f"compacting the context ({get_str(value, 'reason') or 'no reason given'})")]
        return []

    def _response(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        """The answer to an RPC command."""
        if value.get("success") is False:
            failure = explain(get_str(value, "error") or f"the command {value.get('command')} failed")
            fatal = value.get("command") == "prompt"
            self._reported = self._reported or fatal
            return [meta.error(failure.message, failure.error_class, fatal=fatal)]
        data = get_dict(value, "data")
        return self._begin(get_str(data, "sessionId"), get_str(get_dict(data, "model"), "id"))


def _ignore(_: dict[str, Any]) -> list[TranscriptEvent]:
    return []


def _extension(value: dict[str, Any]) -> list[TranscriptEvent]:
    text = get_str(value, "error", "message", "title", "statusText")
    return [Text(Tag.SYS, text)] if text else []


def _content(content: Any) -> str:
    """The text of a message or a result: a string, or a list of blocks. Images are only named."""
    if not isinstance(content, list):
        return output_text(content)
    return "\n".join(
        get_str(block, "text") or (f"[{block['type']}]" if get_str(block, "type") not in (None, "text") else "")
        for block in content
        if isinstance(block, dict)
    )


def _usage(message: dict[str, Any]) -> list[TranscriptEvent]:
    """The tokens of one answer. pi does not count cached tokens as input, and reports 0 for an unknown price."""
    usage = get_dict(message, "usage")
    prompt, output = get_count(usage, "input"), get_count(usage, "output")
    read, written = get_count(usage, "cacheRead"), get_count(usage, "cacheWrite")
    if not any((prompt, output, read, written)):
        return []
    counts = Usage(
        prompt_tokens=None if prompt is None else prompt + (read or 0) + (written or 0),
        completion_tokens=output,
        total_tokens=get_count(usage, "totalTokens"),
        model=get_str(message, "model"),
        cached_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=get_count(usage, "reasoning", "reasoningTokens"),
        cost_usd=get_float(get_dict(usage, "cost"), "total") or get_float(usage, "cost") or None,
    )
    return [UsageEvent(counts)]


ADAPTER = PiAdapter
