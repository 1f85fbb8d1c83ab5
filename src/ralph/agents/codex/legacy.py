"""Codex's `--json` up to 0.43: `{"id": …, "msg": {"type": …}}`, after a line of settings and one of the prompt."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from ralph.agents.codex.calls import Call
from ralph.agents.codex.errors import classify_message, limit, retry
from ralph.agents.codex.fields import arguments, checklist, content_text, token_counts, tool_name
from ralph.transcripts import meta
from ralph.transcripts.deltas import DeltaLines
from ralph.transcripts.events import Tag, Text, ToolStatus, TranscriptEvent, Usage, UsageEvent
from ralph.transcripts.json_lines import get_count, get_dict, get_int, get_list, get_str, get_text
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.recent import RecentCalls

if TYPE_CHECKING:
    from collections.abc import Callable

_NOISE = frozenset(
    {
        *("task_started", "turn_diff", "user_message", "shutdown_complete", "exec_command_output_delta"),
        *("agent_reasoning_section_break", "agent_reasoning_raw_content", "agent_reasoning_raw_content_delta"),
        *("mcp_list_tools_response", "list_custom_prompts_response"),
    }
)


class LegacyMessages:
    """Translates the objects that have a `msg`. No line marks the end, so only an open call shows that it was cut."""

    def __init__(self) -> None:
        self._model: str | None = None
        self._session = False
        self._words = DeltaLines(Tag.AI)
        self._thoughts = DeltaLines(Tag.THINK)
        self._tools = RecentCalls()
        self._counted: dict[str, int] | None = None
        self._handlers: dict[str, Callable[[dict[str, Any]], list[TranscriptEvent]]] = {
            "agent_message": lambda msg: self._whole(self._words, get_text(msg, "message", "text", "content")),
            "agent_reasoning": lambda msg: self._whole(self._thoughts, get_text(msg, "text", "message", "content")),
            "agent_message_delta": lambda msg: self._words.feed(get_str(msg, "delta") or ""),
            "agent_reasoning_delta": lambda msg: self._thoughts.feed(get_str(msg, "delta") or ""),
            "exec_command_begin": self._exec_begin,
            "exec_command_end": self._exec_end,
            "patch_apply_begin": lambda msg: self._start(msg, "apply_patch", {"changes": get_dict(msg, "changes")}),
            "patch_apply_end": self._patch_end,
            "mcp_tool_call_begin": self._mcp_begin,
            "mcp_tool_call_end": self._mcp_end,
            "web_search_begin": lambda msg: self._start(msg, "web_search", None),
            "web_search_end": lambda msg: self._end(msg, "web_search", ToolStatus.OK, get_str(msg, "query")),
            "token_count": self._token_count,
            "session_configured": self._session_configured,
            "stream_error": self._error,
            "error": self._error,
            "background_event": lambda msg: _sys(get_str(msg, "message")),
            "plan_update": lambda msg: _sys(checklist(get_list(msg, "plan"))),
            "task_complete": lambda _: [meta.result(ok=True)],
            "turn_aborted": self._aborted,
        }

    def feed(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        msg = value.get("msg")
        if not isinstance(msg, dict):
            return self._preamble(value)
        name = get_str(msg, "type") or ""
        handler = self._handlers.get(name)
        if handler is not None:
            return handler(msg)
        return [] if name in _NOISE else [meta.unknown(value)]

    def knows(self, value: dict[str, Any]) -> bool:
        if "msg" in value:
            return isinstance(value["msg"], dict) and "type" in value["msg"]
        return ("workdir" in value and "provider" in value) or (len(value) == 1 and "prompt" in value)

    def flush(self) -> list[TranscriptEvent]:
        events = self._thoughts.flush() + self._words.flush()
        if self._tools.oldest() is not None:  # Codex's launcher exits with 0 when a signal ends it
            events.append(meta.error("the output ends in the middle of a tool call", ErrorClass.FAILED))
        return events

    def _preamble(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        prompt = value.get("prompt")
        if isinstance(prompt, str):
            return [Text(Tag.PROMPT, prompt)]
        self._model = get_str(value, "model") or self._model
        return []

    def _session_configured(self, msg: dict[str, Any]) -> list[TranscriptEvent]:
        self._model = get_str(msg, "model") or self._model
        name = get_str(msg, "session_id")
        if name is None or self._session:
            return []
        self._session = True
        return [meta.session(name, self._model)]

    def _whole(self, deltas: DeltaLines, text: str | None) -> list[TranscriptEvent]:
        """A whole message, or the rest of it if it was streamed."""
        return deltas.whole(text) if text else deltas.flush()

    def _start(self, msg: dict[str, Any], name: str, given: dict[str, Any] | None) -> list[TranscriptEvent]:
        key = get_str(msg, "call_id") or name
        if get_str(msg, "call_id") is None and self._tools.get(key, "") is None:
            del self._tools[key]  # without an id, it can only be another call
        if key in self._tools:
            return []
        self._tools.begin(key, name)
        return [Call(key, name).start(given)]

    def _end(self, msg: dict[str, Any], name: str, status: ToolStatus, output: str | None) -> list[TranscriptEvent]:
        key = get_str(msg, "call_id") or name
        events = self._start(msg, name, None)  # unless it has started
        started_as = self._tools[key]
        if started_as is None:
            return []  # it has already ended
        self._tools[key] = None
        call = Call(key, started_as)
        if output:
            events.append(call.output(output.removesuffix("\n")))
        duration = get_dict(msg, "duration")
        seconds, nanos = get_count(duration, "secs"), get_count(duration, "nanos")
        took = None if seconds is None and nanos is None else (seconds or 0) * 1000 + (nanos or 0) // 1_000_000
        return [*events, call.end(status, took)]

    def _exec_begin(self, msg: dict[str, Any]) -> list[TranscriptEvent]:
        command = msg.get("command")
        if isinstance(command, list):
            command = shlex.join(str(word) for word in command)
        return self._start(msg, "shell", {"command": command})

    def _exec_end(self, msg: dict[str, Any]) -> list[TranscriptEvent]:
        code = get_int(msg, "exit_code")
        status = ToolStatus.UNKNOWN if code is None else ToolStatus.FAIL if code else ToolStatus.OK
        return self._end(msg, "shell", status, get_str(msg, "aggregated_output") or _printed(msg))

    def _patch_end(self, msg: dict[str, Any]) -> list[TranscriptEvent]:
        success = msg.get("success")
        status = ToolStatus.OK if success is True else ToolStatus.FAIL if success is False else ToolStatus.UNKNOWN
        return self._end(msg, "apply_patch", status, _printed(msg))

    def _mcp_begin(self, msg: dict[str, Any]) -> list[TranscriptEvent]:
        call = get_dict(msg, "invocation")
        return self._start(msg, tool_name(call) or "mcp", arguments(call))

    def _mcp_end(self, msg: dict[str, Any]) -> list[TranscriptEvent]:
        result = get_dict(msg, "result")
        good = get_dict(result, "Ok")
        wrong = "Err" in result or good.get("isError") is True or good.get("is_error") is True
        status = ToolStatus.FAIL if wrong else ToolStatus.OK if good else ToolStatus.UNKNOWN
        return self._end(msg, "mcp", status, get_str(result, "Err") or content_text(good))

    def _token_count(self, msg: dict[str, Any]) -> list[TranscriptEvent]:
        """The total so far and what the last call added. Some versions repeat the same numbers."""
        info = get_dict(msg, "info")
        total, last = get_dict(info, "total_token_usage"), get_dict(info, "last_token_usage")
        if not total:  # up to 0.29 the message itself has the numbers of one call
            called = token_counts(msg)
            return [UsageEvent(Usage(**called, model=self._model))] if called else []
        counts = token_counts(total)
        if not counts or counts == self._counted:
            return []
        before, self._counted = self._counted, counts
        if before is None:
            # A resumed session's total includes earlier runs, so only its first call counts.
            more = token_counts(last) or counts
        else:
            more = {name: number - before.get(name, 0) for name, number in counts.items()}
            if any(number < 0 for number in more.values()):
                more = counts  # Codex started counting again
        return [UsageEvent(Usage(**more, model=self._model))]

    def _error(self, msg: dict[str, Any]) -> list[TranscriptEvent]:
        message = get_str(msg, "message") or "an error without a message"
        again = retry(message)
        if again is not None:
            return [Text(Tag.SYS, message), again]
        kind = classify_message(message)
        fatal = msg.get("type") == "error"
        return [Text(Tag.SYS, message), *limit(message, kind), meta.error(message, kind, fatal=fatal)]

    def _aborted(self, msg: dict[str, Any]) -> list[TranscriptEvent]:
        reason = f"the turn was aborted: {get_str(msg, 'reason') or 'no reason given'}"
        return [meta.result(ok=False, reason=reason, error_class=ErrorClass.FAILED)]


def _sys(text: str | None) -> list[TranscriptEvent]:
    return [Text(Tag.SYS, text)] if text else []


def _printed(msg: dict[str, Any]) -> str:
    return (get_str(msg, "stdout") or "") + (get_str(msg, "stderr") or "")
