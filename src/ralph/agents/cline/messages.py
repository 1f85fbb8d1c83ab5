"""What Cline printed as JSON before release 3: the chat of its editor extension, one message per line.

A message either says something or asks for something. While it grows it is repeated with the same time, as `partial`.
How a command ended appears only at the beginning of the next request, in what the model is told.
"""

from __future__ import annotations

from typing import Any

from ralph.transcripts import meta
from ralph.transcripts.classify import classify
from ralph.transcripts.errors import CUT
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
    decode_json,
)
from ralph.transcripts.json_lines import get_count, get_float, get_str
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.recent import Recent, RecentKeys

_TOOLS = ("tool", "command", "use_mcp_server", "browser_action", "browser_action_launch")
_OUTPUT = ("command_output", "mcp_server_response", "browser_action_result")
_QUESTIONS = ("followup", "plan_mode_respond", "mistake_limit_reached")
#: Questions to a person who returns to an interrupted task.
_INTERRUPTED = ("resume_task", "resume_completed_task")
_QUIET = ("api_req_finished", "deleted_api_reqs", "checkpoint_created", "mcp_server_request_started", "task_progress")
_ERRORS = ("error", "diff_error", "clineignore_error", "api_req_retried")
_TAGS = {"text": Tag.AI, "reasoning": Tag.THINK, "task": Tag.PROMPT, "user_feedback": Tag.USER}


def is_message(value: dict[str, Any]) -> bool:
    """Whether an object is one of these messages, or the line before the first one."""
    kind = value.get("type")
    return (kind in ("say", "ask") and "ts" in value) or (kind == "task_started" and "taskId" in value)


class MessageReader:
    """Translates messages. An adapter passes them to `feed` and calls `flush` at the end."""

    def __init__(self) -> None:
        self.used = False
        self._growing: dict[str, Any] | None = None
        #: open calls by id: the tool's name and, for a shell, the command
        self._open = Recent[str, tuple[str, str | None]]()
        self._calls = 0
        self._requests = RecentKeys[str]()
        self._ended = False
        self._failed = False
        self._asks = ""
        self._retrying: Meta | None = None

    def feed(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self.used = True
        if value.get("type") == "task_started":
            task = get_str(value, "taskId")
            return [] if task is None else [meta.session(task)]
        before, self._growing = self._growing, None
        events: list[TranscriptEvent] = []
        if before is not None and before.get("ts") != value.get("ts"):
            events = self._message(before)
        if value.get("partial") is True:
            self._growing = value
            return events
        return events + self._message(value)

    def flush(self) -> list[TranscriptEvent]:
        before, self._growing = self._growing, None
        events = [*(self._message(before) if before is not None else []), *self._end_calls()]
        if not self.used or self._ended:
            return events
        if self._asks in _QUESTIONS:
            return [*events, meta.result(ok=False, reason="it asks a question", error_class=ErrorClass.QUESTION)]
        if self._asks in _TOOLS:
            why = "it waits for approval of a tool"
            return [*events, meta.result(ok=False, reason=why, error_class=ErrorClass.PERMISSION_DENIED)]
        if self._failed:
            return events
        if self._retrying is not None:
            problem = self._retrying.meta
            return [*events, meta.error(f"{problem['message']} (it was still retrying)", ErrorClass(problem["class"]))]
        return [*events, meta.error("the task was broken off" if self._asks in _INTERRUPTED else CUT)]

    def _message(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        asks = value.get("type") == "ask"
        kind, text = get_str(value, "ask" if asks else "say") or "", get_str(value, "text") or ""
        self._asks = kind if asks else ""
        if kind in _OUTPUT:
            call = next(reversed(self._open), None)
            return [ToolOutput(ToolRef(call, self._open[call][0]), text)] if call and text else []
        body = _json(text) if kind in ("api_req_started", "api_req_failed", "error_retry") else None
        # Several calls may run before a request tells the model how they ended.
        events = [] if kind in _TOOLS else self._end_calls(get_str(body, "request") or "")
        thought = get_str(value, "reasoning")
        if thought:
            events.append(Text(Tag.THINK, thought))
        match kind:
            case "completion_result":
                return events + self._completion(text)
            case "api_req_started":
                return events + self._request(value.get("ts"), body)
            case "api_req_failed":
                self._failed = True
                reason = get_str(body, "message") or text or "the model could not be asked"
                return [*events, meta.error(reason, classify(text))]
            case "error_retry":
                return events + self._retry(text, body)
        return events + self._content(kind, text, asks=asks)

    def _content(self, kind: str, text: str, *, asks: bool) -> list[TranscriptEvent]:
        if kind in _TOOLS or (text and kind in ("text", "reasoning")):
            self._retrying = None
        if kind in _TOOLS:
            return self._start(kind, text)
        if not text or kind in _QUIET:
            return []
        if kind in _ERRORS:
            return [meta.error(text, fatal=False)]
        return [Text(Tag.AI if asks and kind in _QUESTIONS else _TAGS.get(kind, Tag.SYS), text)]

    def _completion(self, text: str) -> list[TranscriptEvent]:
        if self._ended and not text:
            return []  # it asks again, without words, whether that was all
        self._ended = True
        words: list[TranscriptEvent] = [Text(Tag.AI, text)] if text else []
        return [*words, meta.result(ok=True)]

    def _retry(self, text: str, body: Any) -> list[TranscriptEvent]:
        problem = get_str(body, "errorMessage") or text
        message = get_str(_json(problem), "message") or problem
        if not message or (isinstance(body, dict) and body.get("failed") is True):
            return []  # the request's failure comes next
        delay = get_float(body, "delaySeconds")
        self._retrying = meta.retry(
            message,
            classify(problem),
            attempt=get_count(body, "attempt"),
            delay_ms=None if delay is None else int(delay * 1000),
        )
        return [self._retrying]

    def _start(self, kind: str, text: str) -> list[TranscriptEvent]:
        self._calls += 1
        call = f"call-{self._calls}"
        arguments: Any = {"command": text} if kind == "command" else _json(text)
        name = get_str(arguments, "tool", "toolName") or kind
        self._open[call] = (name, text if kind == "command" else None)
        return [ToolStart(ToolCall(call, name, arguments if isinstance(arguments, dict) else None))]

    def _end_calls(self, request: str = "") -> list[TranscriptEvent]:
        calls = list(self._open.items())
        self._open.clear()
        return [ToolEnd(ToolResult(call, _status(request, command), None, name)) for call, (name, command) in calls]

    def _request(self, ts: Any, body: Any) -> list[TranscriptEvent]:
        """A request's tokens, which a later message with the same time fills in."""
        failed = get_str(body, "streamingFailedMessage")
        events: list[TranscriptEvent] = [meta.error(failed, classify(failed), fatal=False)] if failed else []
        read, written = get_count(body, "cacheReads"), get_count(body, "cacheWrites")
        prompt, output = get_count(body, "tokensIn"), get_count(body, "tokensOut")
        if not any((prompt, output, read, written)) or str(ts) in self._requests:
            return events
        self._requests.add(str(ts))
        usage = Usage(
            prompt_tokens=None if prompt is None else prompt + (read or 0) + (written or 0),
            completion_tokens=output,
            cached_tokens=read,
            cache_write_tokens=written,
            cost_usd=get_float(body, "cost") or None,
        )
        return [*events, UsageEvent(usage)]


def _status(request: str, command: str | None) -> ToolStatus:
    """How a command ended, as the CLI tells the model."""
    _, found, result = request.partition(f"[execute_command for '{command}'] Result:\n")
    if command is None or not found:
        return ToolStatus.UNKNOWN
    if result.startswith("Command executed successfully"):
        return ToolStatus.OK
    return ToolStatus.FAIL if result.startswith("Command failed with exit code") else ToolStatus.UNKNOWN


def _json(text: str) -> Any:
    try:
        return decode_json(text)
    except (ValueError, RecursionError):
        return None
