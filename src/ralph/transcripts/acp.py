"""The Agent Client Protocol (ACP), which several agents speak: the agent's side of a JSON-RPC conversation."""

from __future__ import annotations

from typing import Any

from ralph.transcripts import meta
from ralph.transcripts.classify import classify
from ralph.transcripts.deltas import DeltaLines
from ralph.transcripts.errors import CUT
from ralph.transcripts.events import (
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
from ralph.transcripts.json_lines import get_dict, get_float, get_list, get_str
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.recent import Recent
from ralph.transcripts.tool_calls import output_text

#: The protocol's own code for "call authenticate first".
_AUTH_REQUIRED = -32000
_STATUS = {"completed": ToolStatus.OK, "failed": ToolStatus.FAIL}


def is_rpc(value: dict[str, Any]) -> bool:
    """Whether an object is a line of JSON-RPC."""
    return value.get("jsonrpc") == "2.0"


class AcpReader:
    """Translates JSON-RPC objects. An adapter passes them to `feed` and calls `flush` at the end."""

    def __init__(self) -> None:
        self.used = False
        self._words = DeltaLines(Tag.AI)
        self._thoughts = DeltaLines(Tag.THINK)
        self._session: str | None = None
        self._open_calls = Recent[str, str]()
        self._cost = 0.0
        self._ended = False

    def feed(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self.used = True
        error, params = value.get("error"), get_dict(value, "params")
        if error is not None:
            return self._flush_words() + self._error(error)
        match value.get("method"):
            case None:
                return self._flush_words() + self._response(get_dict(value, "result"))
            case "session/update":
                return self._update(get_dict(params, "update"), value)
            case "session/request_permission":
                title = get_str(get_dict(params, "toolCall"), "title", "toolCallId") or "a tool"
                return [Text(Tag.SYS, f"asks for permission: {title}")]
        return [meta.unknown(value)]

    def flush(self) -> list[TranscriptEvent]:
        """The last words. Without a response to the prompt, the run failed."""
        events = self._flush_words()
        if self.used and not self._ended:
            events.append(meta.error(CUT))
        return events

    def _update(self, update: dict[str, Any], line: dict[str, Any]) -> list[TranscriptEvent]:
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                return self._thoughts.flush() + self._words.feed(_text(update.get("content")))
            case "agent_thought_chunk":
                return self._words.flush() + self._thoughts.feed(_text(update.get("content")))
            case "user_message_chunk":
                return [*self._flush_words(), Text(Tag.PROMPT, _text(update.get("content")))]
            case "tool_call" | "tool_call_update":
                return self._flush_words() + self._tool(update)
            case "usage_update":
                return self._usage(get_dict(update, "cost"))
            case (
                "available_commands_update"
                | "current_mode_update"
                | "config_option_update"
                | "session_info_update"
                | "plan"
            ):
                return []
        return [meta.unknown(line)]

    def _tool(self, update: dict[str, Any]) -> list[TranscriptEvent]:
        call = get_str(update, "toolCallId")
        if call is None:
            return [meta.unknown(update)]
        events: list[TranscriptEvent] = []
        if update.get("sessionUpdate") == "tool_call" and call not in self._open_calls:
            # The title is for people ("shell · ls -la"), but the protocol has no other name.
            name = get_str(update, "title", "kind") or "tool"
            self._open_calls[call] = name
            events.append(ToolStart(ToolCall(call, name, get_dict(update, "rawInput") or None)))
        status = _STATUS.get(get_str(update, "status") or "")
        if status is None or call not in self._open_calls:
            return events
        name = self._open_calls.pop(call)
        output = "\n".join(filter(None, map(_text, get_list(update, "content"))))
        output = output or output_text(update.get("rawOutput"))
        if output:
            events.append(ToolOutput(ToolRef(call, name), output))
        return [*events, ToolEnd(ToolResult(call, status, None, name))]

    def _usage(self, cost: dict[str, Any]) -> list[TranscriptEvent]:
        """The cost since the last update. Tokens are left out: agents report the size of the context there."""
        amount = get_float(cost, "amount")
        if amount is None or amount <= self._cost or cost.get("currency") != "USD":
            return []
        spent, self._cost = amount - self._cost, amount
        return [UsageEvent(Usage(cost_usd=spent))]

    def _response(self, result: dict[str, Any]) -> list[TranscriptEvent]:
        session = get_str(result, "sessionId")
        if session is not None and self._session is None:
            self._session = session
            return [meta.session(session)]
        reason = get_str(result, "stopReason")
        if reason is None:
            return []  # the response to `initialize` or similar
        self._ended = True
        if reason == "end_turn":
            return [meta.result(ok=True, reason=reason)]
        return [meta.result(ok=False, reason=reason, error_class=ErrorClass.FAILED)]

    def _error(self, error: Any) -> list[TranscriptEvent]:
        self._ended = True
        message = get_str(error, "message") or "the agent answered with an error"
        detail = get_str(error, "data")
        if detail is not None:
            message = f"{message}: {detail}"
        if isinstance(error, dict) and error.get("code") == _AUTH_REQUIRED and "auth" in message.lower():
            return [meta.error(message, ErrorClass.AUTH)]
        return [meta.error(message, classify(message))]

    def _flush_words(self) -> list[TranscriptEvent]:
        return self._thoughts.flush() + self._words.flush()


def _text(content: Any) -> str:
    """The text of a content block, which may be wrapped in another."""
    return get_str(get_dict(content, "content") or content, "text") or ""
