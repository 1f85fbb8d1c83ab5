"""The Agent Client Protocol, which several agents speak: the agent's side of a JSON-RPC conversation."""

from __future__ import annotations

from typing import Any

import msgspec

from ralph.transcripts import meta
from ralph.transcripts.acp_lines import (
    Called,
    CallUpdate,
    Line,
    MessageChunk,
    ThoughtChunk,
    UsageUpdate,
    decode_line,
)
from ralph.transcripts.classify import classify
from ralph.transcripts.deltas import DeltaLines
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
from ralph.transcripts.json_lines import Usual, get_dict, get_float, get_list, get_str
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.recent import Recent

_CUT = "the output ends without a result"
#: The protocol's own code for "call authenticate first".
_AUTH_REQUIRED = -32000
_STATUS = {"completed": ToolStatus.OK, "failed": ToolStatus.FAIL}
_QUIET = frozenset(
    {"available_commands_update", "current_mode_update", "config_option_update", "session_info_update", "plan"}
)


def is_rpc(value: dict[str, Any]) -> bool:
    """Whether an object is a line of JSON-RPC."""
    return value.get("jsonrpc") == "2.0"


class AcpReader:
    """Translates JSON-RPC objects; an adapter hands them over and asks for the rest at the end."""

    def __init__(self) -> None:
        self._words = DeltaLines(Tag.AI)
        self._thoughts = DeltaLines(Tag.THINK)
        self._session: str | None = None
        self._tools = Recent[str, str]()
        self._cost = 0.0
        self._ended = False
        self.used = False

    def feed(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self.used = True
        error = value.get("error")
        if error is not None:
            return [*self._flush_words(), *self._error(error)]
        match value.get("method"):
            case None:
                return [*self._flush_words(), *self._answer(get_dict(value, "result"))]
            case "session/update":
                return self._update(get_dict(get_dict(value, "params"), "update"), value)
            case "session/request_permission":
                call = get_dict(get_dict(value, "params"), "toolCall")
                return [Text(Tag.SYS, f"asks for permission: {get_str(call, 'title', 'toolCallId') or 'a tool'}")]
        return [meta.unknown(value)]

    @property
    def usual(self) -> Usual:
        """What reads the lines that a conversation mostly consists of."""
        return decode_line, self._usual

    def _usual(self, line: Line, events: list[TranscriptEvent]) -> bool:
        update = line.params.update
        # Not by isinstance, which is slow to say no.
        if type(update) is MessageChunk:
            if self._thoughts.begun:
                events += self._thoughts.flush()
            self._words.add(update.content.text, events)
        elif type(update) is ThoughtChunk:
            if self._words.begun:
                events += self._words.flush()
            self._thoughts.add(update.content.text, events)
        elif type(update) is CallUpdate or type(update) is Called:
            self._usual_call(update, events)
        elif type(update) is UsageUpdate:
            cost = update.cost
            if cost is not None and cost.currency == "USD":
                events += self._cost_so_far(cost.amount)
        return True

    def _usual_call(self, update: Called | CallUpdate, events: list[TranscriptEvent]) -> None:
        events += self._flush_words()
        call = update.tool_call_id
        if type(update) is Called and call not in self._tools:
            self._begin(events, call, update.title or update.kind, update.raw_input)
        status = _STATUS.get(update.status) if update.status is not None else None
        if status is not None and call in self._tools:
            content = update.content
            output = "\n".join([part.content.text for part in content if part.content.text]) if content else ""
            self._end(events, call, output or _raw(update.raw_output), status)

    def flush(self) -> list[TranscriptEvent]:
        """The last words; without the answer to a prompt the run has not ended well."""
        events = self._flush_words()
        if self.used and not self._ended:
            events.append(meta.error(_CUT))
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
                return [*self._flush_words(), *self._tool(update)]
            case "usage_update":
                return self._spent(get_dict(update, "cost"))
            case str(kind) if kind in _QUIET:
                return []
        return [meta.unknown(line)]

    def _tool(self, update: dict[str, Any]) -> list[TranscriptEvent]:
        call = get_str(update, "toolCallId")
        if call is None:
            return [meta.unknown(update)]
        events: list[TranscriptEvent] = []
        if update.get("sessionUpdate") == "tool_call" and call not in self._tools:
            self._begin(events, call, get_str(update, "title", "kind"), get_dict(update, "rawInput"))
        status = _STATUS.get(str(update.get("status")))
        if status is not None and call in self._tools:
            output = "\n".join(t for t in map(_text, get_list(update, "content")) if t) or _raw(update.get("rawOutput"))
            self._end(events, call, output, status)
        return events

    def _begin(self, events: list[TranscriptEvent], call: str, title: str | None, given: dict[str, Any] | None) -> None:
        # The title is for people ("shell · ls -la"), but the protocol has no other name.
        name = title or "tool"
        self._tools[call] = name
        events.append(ToolStart(ToolCall(call, name, given or None)))

    def _end(self, events: list[TranscriptEvent], call: str, output: str, status: ToolStatus) -> None:
        name = self._tools.pop(call)
        if output:
            events.append(ToolOutput(ToolRef(call, name), output))
        events.append(ToolEnd(ToolResult(call, status, None, name)))

    def _spent(self, cost: dict[str, Any]) -> list[TranscriptEvent]:
        amount = get_float(cost, "amount")
        return [] if amount is None or cost.get("currency") != "USD" else self._cost_so_far(amount)

    def _cost_so_far(self, amount: float) -> list[TranscriptEvent]:
        """Costs add up over a session. Tokens are left out: what agents put there is the context's size."""
        if amount <= self._cost:
            return []
        spent, self._cost = amount - self._cost, amount
        return [UsageEvent(Usage(cost_usd=spent))]

    def _answer(self, result: dict[str, Any]) -> list[TranscriptEvent]:
        session = get_str(result, "sessionId")
        if session is not None and self._session is None:
            self._session = session
            return [meta.session(session)]
        reason = get_str(result, "stopReason")
        if reason is None:
            return []  # to `initialize` and the like
        self._ended = True
        if reason == "end_turn":
            return [meta.result(ok=True, reason=reason)]
        return [meta.result(ok=False, reason=reason, error_class=ErrorClass.FAILED)]

    def _error(self, error: Any) -> list[TranscriptEvent]:
        self._ended = True
        message = get_str(error, "message") or "the agent answered with an error"
        detail = error.get("data") if isinstance(error, dict) else None
        if isinstance(detail, str) and detail:
            message = f"{message}: {detail}"
        if isinstance(error, dict) and error.get("code") == _AUTH_REQUIRED and "auth" in message.lower():
            return [meta.error(message, ErrorClass.AUTH)]
        return [meta.error(message, classify(message))]

    def _flush_words(self) -> list[TranscriptEvent]:
        events = self._thoughts.flush() if self._thoughts.begun else []
        return events + self._words.flush() if self._words.begun else events


def _text(content: Any) -> str:
    """The text of a content block, which may be wrapped in another."""
    if type(content) is not dict:
        return ""
    inner = content.get("content")
    text = (inner if type(inner) is dict and inner else content).get("text")
    return text if type(text) is str else ""


def _raw(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return msgspec.json.encode(value).decode()
