"""What Cline printed as JSON before release 3: the chat of its editor extension, one message a line.

A message is said or asks; while it grows it comes again with the same time, as `partial`. Nothing here was recorded:
it follows the published schema, so what is not certain stays unknown.
"""

from __future__ import annotations

from typing import Any

from ralph.transcripts import meta
from ralph.transcripts._errors import classify
from ralph.transcripts._json import get_count, get_float, get_str
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
    decode_json,
)
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.recent import RecentKeys

_CUT = "the output ends without a result"
_TYPES = ("say", "ask")
_TOOLS = ("tool", "command", "use_mcp_server", "browser_action", "browser_action_launch")
_OUTPUT = ("command_output", "mcp_server_response", "browser_action_result")
_QUESTIONS = ("followup", "plan_mode_respond", "mistake_limit_reached", "resume_task")
_QUIET = ("api_req_finished", "deleted_api_reqs", "checkpoint_created", "mcp_server_request_started", "task_progress")
_ERRORS = ("error", "error_retry", "diff_error", "clineignore_error", "api_req_retried")


def is_message(value: dict[str, Any]) -> bool:
    """Whether an object is one of these messages, or the line before the first one."""
    kind = value.get("type")
    return (kind in _TYPES and "ts" in value) or (kind == "task_started" and "taskId" in value)


class MessageReader:
    """Translates messages; an adapter hands them over and asks for the rest at the end."""

    def __init__(self) -> None:
        self.used = False
        self._growing: dict[str, Any] | None = None
        self._call: tuple[str, str] | None = None
        self._calls = 0
        self._requests = RecentKeys[str]()
        self._ended = False
        self._told = False
        self._asks = ""

    def feed(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self.used = True
        if value.get("type") == "task_started":
            task = get_str(value, "taskId")
            return [] if task is None else [meta.session(task)]
        if value.get("partial") is True:
            before, self._growing = self._growing, value
            return [] if before is None or before.get("ts") == value.get("ts") else self._message(before)
        before, self._growing = self._growing, None
        if before is None or before.get("ts") == value.get("ts"):
            return self._message(value)
        return [*self._message(before), *self._message(value)]

    def flush(self) -> list[TranscriptEvent]:
        before, self._growing = self._growing, None
        events = [*(self._message(before) if before is not None else []), *self._end_call()]
        if not self.used or self._ended:
            return events
        if self._asks in _QUESTIONS:
            return [*events, meta.result(ok=False, reason="it asks a question", error_class=ErrorClass.QUESTION)]
        if self._asks in _TOOLS:
            why = "it waits for approval of a tool"
            return [*events, meta.result(ok=False, reason=why, error_class=ErrorClass.PERMISSION_DENIED)]
        return events if self._told else [*events, meta.error(_CUT)]

    def _message(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        asks = value.get("type") == "ask"
        kind, text = get_str(value, "ask" if asks else "say") or "", get_str(value, "text") or ""
        self._asks = kind if asks else ""
        if kind in _OUTPUT:
            return [ToolOutput(ToolRef(*self._call), text)] if self._call and text else []
        events = self._end_call()
        thought = get_str(value, "reasoning")
        if thought:
            events.append(Text(Tag.THINK, thought))
        if kind == "completion_result":
            return events + self._completion(text)
        if kind == "api_req_started":
            return events + self._request(value.get("ts"), text)
        if kind == "api_req_failed":
            self._told = True
            return [*events, meta.error(text or "the model could not be asked", classify(text))]
        if kind in _TOOLS:
            return events + self._start(kind, text)
        if kind in _ERRORS:
            return [*events, meta.error(text, fatal=False)] if text else events
        if not text or kind in _QUIET:
            return events
        tag = {"text": Tag.AI, "reasoning": Tag.THINK, "task": Tag.PROMPT, "user_feedback": Tag.USER}
        known = Tag.AI if asks and kind in _QUESTIONS else tag.get(kind, Tag.SYS)
        return [*events, Text(known, text)]

    def _completion(self, text: str) -> list[TranscriptEvent]:
        words: list[TranscriptEvent] = [Text(Tag.AI, text)] if text else []
        if self._ended and not text:
            return []  # it asks, once more and without words, whether that was all
        self._ended = True
        return [*words, meta.result(ok=True)]

    def _start(self, kind: str, text: str) -> list[TranscriptEvent]:
        self._calls += 1
        arguments: Any = {"command": text} if kind == "command" else _json(text)
        name = get_str(arguments, "tool", "toolName") or kind
        self._call = (f"call-{self._calls}", name)
        return [ToolStart(ToolCall(*self._call, arguments if isinstance(arguments, dict) else None))]

    def _end_call(self) -> list[TranscriptEvent]:
        if self._call is None:
            return []
        (call, name), self._call = self._call, None
        return [ToolEnd(ToolResult(call, ToolStatus.UNKNOWN, None, name))]

    def _request(self, ts: Any, text: str) -> list[TranscriptEvent]:
        """A request's tokens, which are filled in later under the same time."""
        body = _json(text)
        failed = get_str(body, "streamingFailedMessage")
        events: list[TranscriptEvent] = [meta.error(failed, classify(failed), fatal=False)] if failed else []
        read, written = get_count(body, "cacheReads"), get_count(body, "cacheWrites")
        prompt, output = get_count(body, "tokensIn"), get_count(body, "tokensOut")
        if not any((prompt, output, read, written)) or str(ts) in self._requests:
            return events
        usage = Usage(
            prompt_tokens=None if prompt is None else prompt + (read or 0) + (written or 0),
            completion_tokens=output,
            cached_tokens=read,
            cache_write_tokens=written,
            cost_usd=get_float(body, "cost") or None,
        )
        self._requests.add(str(ts))
        return [*events, UsageEvent(usage)]


def _json(text: str) -> Any:
    try:
        return decode_json(text)
    except (ValueError, RecursionError):
        return None
