"""pi: `--mode json` and `--mode rpc`, one event a line, and text, which is the last message alone.

Its exit code says nothing in JSON: the last assistant message's `stopReason` does. Old versions repeat the whole
message in every update; new ones say at `agent_end` whether they try again, and `agent_settled` when all is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ralph.agents.pi.errors import PiError, explain, on_stderr
from ralph.agents.pi.lines import Begun, Called, Line, Progress, Update, decode_line
from ralph.transcripts import meta
from ralph.transcripts.base import Capabilities
from ralph.transcripts.deltas import DeltaLines
from ralph.transcripts.events import (
    Meta,
    Tag,
    Text,
    ToolCall,
    ToolEnd,
    ToolOutput,
    ToolRef,
    ToolResult,
    ToolStart,
    ToolStatus,
    TranscriptEvent,
    Usage,
    UsageEvent,
)
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
from ralph.transcripts.recent import Recent, RecentKeys

if TYPE_CHECKING:
    from collections.abc import Callable

_CUT = "the output ends without a result"
_GOOD = frozenset({"stop", "toolUse"})
_BAD = {
    "length": "the model's answer was cut at its output limit",
    "aborted": "the run was aborted",
    "error": "the model's answer ended in an error",
}
#: Events that say nothing of interest: what they announce comes in others.
_QUIET = frozenset(
    {
        "turn_start",
        "turn_end",
        "tool_execution_update",
        "entry_appended",
        "queue_update",
        "session_info_changed",
        "thinking_level_changed",
        "auto_retry_end",
        "summarization_retry_attempt_start",
        "summarization_retry_finished",
    }
)


class PiAdapter(JsonAdapter):
    name = "pi"
    capabilities = Capabilities(
        supports_roles=True, supports_tool_events=True, supports_usage_events=True, supports_prompt_hiding=True
    )

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._words = DeltaLines(Tag.AI)
        self._thoughts = DeltaLines(Tag.THINK)
        # how much of the current message came in fragments
        self._said = 0
        self._thought = 0
        self._session: str | None = None
        self._tools = Recent[str, str]()
        self._finished = RecentKeys[str]()
        self._stop: str | None = None
        self._failure: PiError | None = None
        #: the verdict of an agent's run that may still be followed by another try
        self._pending: Meta | None = None
        self._retrying: PiError | None = None
        self._ended = False
        self._told = False
        self._handlers: dict[str, Callable[[dict[str, Any]], list[TranscriptEvent]]] = {
            "message_update": self._message_update,
            "message_start": self._message_start,
            "message_end": self._message_end,
            "tool_execution_start": self._tool_start,
            "tool_execution_end": self._tool_end,
            "session": self._header,
            "agent_start": self._agent_start,
            "agent_end": self._agent_end,
            "agent_settled": self._settled,
            "auto_retry_start": self._retry,
            "summarization_retry_scheduled": self._summary_retry,
            "compaction_start": self._compaction,
            "compaction_end": self._compaction,
            "auto_compaction_start": self._compaction,
            "auto_compaction_end": self._compaction,
            "response": self._response,
            "extension_ui_request": self._extension,
            "extension_error": self._extension,
        }

    # -- lines

    def recognises(self, value: dict[str, Any]) -> bool:
        match value.get("type"):
            case "session":
                return "id" in value and ("version" in value or "cwd" in value)
            case "response":
                return "command" in value
            case "message_update":
                return "assistantMessageEvent" in value
            case "agent_start" | "turn_start" | "agent_end" | "agent_settled" | "auto_retry_start":
                return True
            case "message_start" | "message_end":
                return isinstance(value.get("message"), dict)
            case "tool_execution_start" | "tool_execution_end":
                return "toolCallId" in value
        return False

    def on_text(self, line: str) -> list[TranscriptEvent]:
        # A terminal shows both streams as one.
        return self.feed_stderr(line) if self.structured else [Text(Tag.AI, line)]

    def feed_stderr(self, line: str) -> list[TranscriptEvent]:
        events: list[TranscriptEvent] = [Text(Tag.SYS, line)]
        failure = on_stderr(strip_escapes(line))
        if failure is not None:
            self._told = True
            events += [*failure.limit(), meta.error(failure.message, failure.error_class)]
        return events

    def usual(self) -> Usual | None:
        return (decode_line, self._usual) if self.structured else None

    def _usual(self, line: Line, events: list[TranscriptEvent]) -> bool:
        # Not by isinstance, which is slow to say no.
        if type(line) is Update:
            fragment = line.assistant_message_event
            kind = fragment.type
            if kind == "text_delta":
                self._said += len(fragment.delta)
                self._words.add(fragment.delta, events)
            elif kind == "thinking_delta":
                self._thought += len(fragment.delta)
                self._thoughts.add(fragment.delta, events)
            elif kind == "text_end":
                events += self._words.flush()
            elif kind == "thinking_end":
                events += self._thoughts.flush()
        elif type(line) is Begun:
            self._said = self._thought = 0
            events += self._flush_words()
        elif type(line) is Called:
            if not line.tool_call_id or not line.tool_name:
                return False
            events += self._start(line.tool_call_id, line.tool_name, line.args)
        else:
            return type(line) is Progress
        return True

    def on_object(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self.structured = True
        kind = value.get("type")
        if not isinstance(kind, str):
            return [meta.unknown(value)]
        handler = self._handlers.get(kind)
        if handler is not None:
            return handler(value)
        return [] if kind in _QUIET else [meta.unknown(value)]

    def flush(self) -> list[TranscriptEvent]:
        events = [*super().flush(), *self._flush_words()]
        if not self.structured or self._ended:
            return events
        if self._pending is not None:
            events += self._settled({})
        elif self._retrying is not None:
            events.append(meta.error(f"{self._retrying.message} (it was still retrying)", self._retrying.error_class))
        elif not self._told:
            events.append(meta.error(_CUT))
        return events

    # -- messages

    def _message_start(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self._said = self._thought = 0
        return self._flush_words()

    def _message_update(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        event = value.get("assistantMessageEvent")
        if not isinstance(event, dict):
            return [meta.unknown(value)]
        match event.get("type"):
            case "text_delta":
                delta = get_str(event, "delta") or ""
                self._said += len(delta)
                return self._words.feed(delta)
            case "thinking_delta":
                delta = get_str(event, "delta") or ""
                self._thought += len(delta)
                return self._thoughts.feed(delta)
            case "text_end":
                return self._words.flush()
            case "thinking_end":
                return self._thoughts.flush()
        return []  # the beginnings of blocks, and calls, which come whole when they run

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
            case str():  # what extensions, a shell command of the user's or a summary put into the conversation
                text = _content(message.get("content")) or get_str(message, "summary", "output") or ""
                return [Text(Tag.SYS, text)] if text else [meta.unknown(value)]
        return [meta.unknown(value)]

    def _assistant(self, message: dict[str, Any]) -> list[TranscriptEvent]:
        events: list[TranscriptEvent] = []
        for block in get_list(message, "content"):
            match block:
                case {"type": "thinking", "thinking": str(text)}:
                    new = text[self._thought :]
                    self._thought = max(0, self._thought - len(text))
                    events += [*self._thoughts.feed(new), *self._thoughts.flush()] if new else []
                case {"type": "text", "text": str(text)}:
                    new = text[self._said :]
                    self._said = max(0, self._said - len(text))
                    events += [*self._words.feed(new), *self._words.flush()] if new else []
        events += self._flush_words()
        self._said = self._thought = 0
        self._retrying = None
        self._stop = get_str(message, "stopReason")
        error = get_str(message, "errorMessage")
        self._failure = explain(error) if error is not None and self._stop not in _GOOD else None
        usage = _usage(message)
        if usage is not None:
            events.append(UsageEvent(usage))
        return events

    def _flush_words(self) -> list[TranscriptEvent]:
        return [*self._thoughts.flush(), *self._words.flush()]

    # -- tools

    def _tool_start(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        call = get_str(value, "toolCallId")
        if call is None:
            return [meta.unknown(value)]
        arguments = value.get("args")
        name = get_str(value, "toolName") or "tool"
        return self._start(call, name, arguments if isinstance(arguments, dict) else None)

    def _start(self, call: str, name: str, arguments: dict[str, Any] | None) -> list[TranscriptEvent]:
        if call in self._tools or call in self._finished:
            return []
        self._tools[call] = name
        return [ToolStart(ToolCall(call, name, arguments))]

    def _tool_end(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        """The end of a call; the message with its result comes after it and is one more copy."""
        call = get_str(value, "toolCallId")
        if call is None:
            return [meta.unknown(value)]
        if call in self._finished:
            return []
        self._finished.add(call)
        events: list[TranscriptEvent] = []
        name = self._tools.pop(call, None)
        if name is None:
            name = get_str(value, "toolName") or "tool"
            events.append(ToolStart(ToolCall(call, name)))
        result = value.get("result")
        output = _content(result.get("content")) if isinstance(result, dict) else _content(result)
        if output:
            events.append(ToolOutput(ToolRef(call, name), output))
        match value.get("isError"):
            case True:
                status = ToolStatus.FAIL
            case False:
                status = ToolStatus.OK
            case _:
                status = ToolStatus.UNKNOWN
        events.append(ToolEnd(ToolResult(call, status, get_count(value, "durationMs"), name)))
        return events

    # -- the run

    def _header(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        return self._begin(get_str(value, "id"), None)

    def _begin(self, session: str | None, model: str | None) -> list[TranscriptEvent]:
        if session is None or self._session is not None:
            return []
        self._session = session
        return [meta.session(session, model)]

    def _agent_start(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self._pending = None
        self._ended = False
        self._stop = None
        self._failure = None
        return []

    def _agent_end(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        events = self._flush_words()
        if self._stop is None:
            last = next((m for m in reversed(get_list(value, "messages")) if get_str(m, "role") == "assistant"), None)
            self._stop = get_str(last, "stopReason")
            error = get_str(last, "errorMessage")
            self._failure = explain(error) if error is not None and self._stop not in _GOOD else None
        self._pending = self._verdict()
        # Versions that tell whether they try again also tell when all is over. The others never go on after a good
        # end, but after a bad one they may: that waits for what comes next.
        if "willRetry" not in value and self._pending.meta["ok"]:
            events += self._settled(value)
        return events

    def _settled(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        if self._ended:
            return []
        self._ended = True
        if value.get("aborted") is True and self._failure is None:  # since 1.x; the last answer may have been whole
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
        self._retrying = explain(get_str(value, "errorMessage") or _BAD["error"])
        return self._summary_retry(value)

    def _summary_retry(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        """Of the context's summary, without which the run goes on or ends by words of its own."""
        failure = explain(get_str(value, "errorMessage") or _BAD["error"])
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

    # -- rpc

    def _response(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        if value.get("success") is False:
            failure = explain(get_str(value, "error") or f"the command {value.get('command')} failed")
            fatal = value.get("command") == "prompt"
            self._told = self._told or fatal
            return [meta.error(failure.message, failure.error_class, fatal=fatal)]
        data = get_dict(value, "data")
        return self._begin(get_str(data, "sessionId"), get_str(get_dict(data, "model"), "id"))

    def _extension(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        text = get_str(value, "error", "message", "title", "statusText")
        return [Text(Tag.SYS, text)] if text else []


def _content(content: Any) -> str:
    """The text of a message or a result: a string, or blocks, of which a picture is only named."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else msgspec.json.encode(content).decode()
    return "\n".join(
        get_str(block, "text") or (f"[{block['type']}]" if get_str(block, "type") not in (None, "text") else "")
        for block in content
        if isinstance(block, dict)
    )


def _usage(message: dict[str, Any]) -> Usage | None:
    """One answer's tokens; pi counts cached ones apart from the input. A price that it does not know is 0."""
    usage = get_dict(message, "usage")
    prompt, output = get_count(usage, "input"), get_count(usage, "output")
    read, written = get_count(usage, "cacheRead"), get_count(usage, "cacheWrite")
    if not any((prompt, output, read, written)):
        return None
    cost = usage.get("cost")
    return Usage(
        prompt_tokens=None if prompt is None else prompt + (read or 0) + (written or 0),
        completion_tokens=output,
        total_tokens=get_count(usage, "totalTokens"),
        model=get_str(message, "model"),
        cached_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=get_count(usage, "reasoning", "reasoningTokens"),
        cost_usd=(get_float(cost, "total") if isinstance(cost, dict) else get_float(usage, "cost")) or None,
    )


ADAPTER = PiAdapter
