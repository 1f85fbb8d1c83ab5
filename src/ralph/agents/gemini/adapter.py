"""Gemini CLI: stream-json, json and text.

In json the object of a failed run comes on stderr; in text all errors do. Thoughts are never printed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ralph.agents.gemini.errors import FATAL_ANYWHERE, GUARDED_TOOLS, Failure, StderrReader, explain
from ralph.agents.gemini.lines import Line, Message, Result, ToolUse, decode_line
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
from ralph.transcripts.json_lines import JsonAdapter, Usual, get_count, get_dict, get_int, get_list, get_str
from ralph.transcripts.meta import ErrorClass, Kind
from ralph.transcripts.recent import Recent, RecentKeys

if TYPE_CHECKING:
    from collections.abc import Callable

#: Warnings after which the CLI stops and calls it a success.
_STOPPED = ("Loop detected", "Maximum session turns")
#: The CLI's own lines, which on a terminal stand among the agent's words.
_NOISE = (
    "Warning: ",
    "YOLO mode is enabled.",
    "[STARTUP] ",
    "Ripgrep is not available.",
    "Loaded cached credentials",
    "Approval mode overridden to ",
    "(node:",
    "(Use `node --trace-",
)
_EXITED = re.compile(r"Command (?:exited with code: (?!0$)\d+|terminated by signal: \S+|failed: .*)")
#: All that 0.20 says at the end of its json, and 0.45 of its stream-json; what the error was stands among the retries.
_NO_WORDS = ("[object Object]", "An unknown error occurred.")
_NOTHING: dict[str, Any] = {}
_DOCUMENT_START = ('"session_id":', '"response":', '"stats":', '"error":')


class GeminiAdapter(JsonAdapter):
    name = "gemini"
    capabilities = Capabilities(
        supports_roles=True, supports_tool_events=True, supports_usage_events=True, supports_prompt_hiding=True
    )

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._words = DeltaLines(Tag.AI)
        self._stderr = StderrReader()
        self._tools = Recent[str, str]()
        self._open = RecentKeys[str]()
        self._refused = Recent[str, str]()
        self._session: str | None = None
        self._spoke = False
        self._ended = False
        self._problem: str | None = None
        self._retrying: dict[str, Any] | None = None
        self._handlers: dict[str, Callable[[dict[str, Any]], list[TranscriptEvent]]] = {
            "message": self._message,
            "tool_use": self._tool_use,
            "tool_result": self._tool_result,
            "init": self._init,
            "thought": self._thought,
            "error": self._error,
            "result": self._result,
        }

    # -- lines

    def on_text(self, line: str) -> list[TranscriptEvent]:
        if self.structured:
            return self.feed_stderr(line)  # a terminal shows both streams as one
        if line.startswith(_NOISE):
            return [Text(Tag.SYS, line)]
        if not self._spoke and line.strip():
            if line.startswith(FATAL_ANYWHERE):
                return self.feed_stderr(line)
            self._spoke = True
        return [Text(Tag.AI, line)]

    def feed_stderr(self, line: str) -> list[TranscriptEvent]:
        return [Text(Tag.SYS, line), *self._read_stderr(line)]

    def _read_stderr(self, line: str) -> list[TranscriptEvent]:
        events = self._stderr.feed(line)
        for event in events:
            if isinstance(event, Meta) and event.meta["kind"] == Kind.RETRY:
                self._retrying = event.meta
        last = self._stderr.last_object
        if last is not None:
            self._stderr.last_object = None
            if not self._ended:  # some versions print it twice
                events += self._document_end(last)
        return events

    def recognises(self, value: dict[str, Any]) -> bool:
        kind = value.get("type")
        if isinstance(kind, str) and kind in self._handlers:
            return kind == "init" or "timestamp" in value
        if "session_id" in value and isinstance(value.get("error"), dict):
            return True
        return "response" in value and "stats" in value

    def flush(self) -> list[TranscriptEvent]:
        if len(self._document) > 1 and self._document[1].lstrip().startswith(_DOCUMENT_START):
            self.structured = True  # the json format, cut short
        events = super().flush() + self._words.flush() + self._stderr.flush_held()
        if self._ended:
            return events
        if self.structured:
            retrying = self._retrying or {}
            what = f" (it was retrying: {retrying.get('message')})" if retrying else ""
            error_class = ErrorClass(retrying.get("class", ErrorClass.FAILED))
            events.append(meta.error(f"the output ends without a result{what}", error_class))
        elif self._stderr.refused:
            events.append(meta.error(*self._refusal()))
        return events

    def usual(self) -> Usual | None:
        return (decode_line, self._usual) if self.structured else None

    def _usual(self, line: Line, events: list[TranscriptEvent]) -> bool:
        # Not by isinstance, which is slow to say no.
        if type(line) is Message:
            if line.delta and line.role == "assistant":
                self._retrying = None
                self._words.add(line.content, events)
            else:
                events += self._whole(line.role, line.content, delta=line.delta)
            return True
        if type(line) is Result:
            if line.tool_id:
                self._tool_end(events, line.tool_id, line.output, line.status, _NOTHING, None)
                return True
        elif type(line) is ToolUse and line.tool_id and line.tool_name:
            self._tool_start(events, line.tool_id, line.tool_name, line.parameters)
            return True
        return False

    # -- objects

    def on_object(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self.structured = True
        kind = value.get("type")
        handler = self._handlers.get(kind) if isinstance(kind, str) else None
        if handler is not None:
            return handler(value)
        if "response" in value or isinstance(value.get("error"), dict):
            return self._document_end(value)
        return [*self._words.flush(), meta.unknown(value)]

    def _message(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        return self._whole(value.get("role"), _content(value.get("content")), delta=value.get("delta") is True)

    def _whole(self, role: Any, content: str, *, delta: bool) -> list[TranscriptEvent]:
        if role == "user":
            events = self._words.flush() if self._words.begun else []
            events.append(Text(Tag.PROMPT, content))
            return events
        if role not in ("assistant", "model"):
            return [*self._words.flush(), Text(Tag.SYS, content)]
        self._retrying = None
        if delta:
            return self._words.feed(content)
        repeated = self._words.length == len(content) > 0
        events = self._words.flush()
        return events if repeated or not content else [*events, Text(Tag.AI, content)]

    def _tool_use(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        tool_id = get_str(value, "tool_id", "id") or f"call-{self._tools.added + 1}"
        events: list[TranscriptEvent] = []
        name = get_str(value, "tool_name", "name") or "tool"
        self._tool_start(events, tool_id, name, get_dict(value, "parameters"))
        return events

    def _tool_start(self, events: list[TranscriptEvent], tool_id: str, name: str, parameters: dict[str, Any]) -> None:
        self._retrying = None
        self._tools[tool_id] = name
        self._open.add(tool_id)
        if self._words.begun:
            events += self._words.flush()
        events.append(ToolStart(ToolCall(tool_id, name, parameters or None)))

    def _tool_result(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        tool_id = get_str(value, "tool_id", "id") or next(reversed(self._tools), "call-1")
        error = get_dict(value, "error")
        output = _content(value.get("output")) or get_str(error, "message") or ""
        events: list[TranscriptEvent] = []
        self._tool_end(events, tool_id, output, value.get("status"), error, get_count(value, "duration_ms"))
        return events

    def _tool_end(
        self,
        events: list[TranscriptEvent],
        tool_id: str,
        output: str,
        told: Any,
        error: dict[str, Any],
        duration_ms: int | None,
    ) -> None:
        name = self._tools.get(tool_id)
        match told:
            case "success" if output[:8] == "Command " and name == "run_shell_command" and _EXITED.fullmatch(output):
                status = ToolStatus.FAIL
            case "success":
                # A command's exit code is not given: to the CLI, one that ran is a success.
                status = ToolStatus.OK
                if self._refused:
                    self._refused.pop(name or "", None)
            case "error" | "cancelled":
                status = ToolStatus.FAIL
                if error.get("type") == "policy_violation" or (
                    error.get("type") == "tool_not_registered" and name in GUARDED_TOOLS
                ):
                    self._refused[name or "a tool"] = output
            case _:
                status = ToolStatus.UNKNOWN
        if self._words.begun:
            events += self._words.flush()
        if tool_id in self._open:
            self._open.discard(tool_id)
        else:  # its beginning was not told
            name = self._tools.setdefault(tool_id, "tool")
            events.append(ToolStart(ToolCall(tool_id, name)))
        if output:
            events.append(ToolOutput(ToolRef(tool_id, name), output))
        events.append(ToolEnd(ToolResult(tool_id, status, duration_ms, name)))

    def _init(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        return [*self._words.flush(), *self._begin(value)]

    def _begin(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        session = get_str(value, "session_id")
        if session is None or self._session is not None:
            return []
        self._session = session
        return [meta.session(session, get_str(value, "model"))]

    def _thought(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        parts = (get_str(value, "subject"), get_str(value, "description", "content", "text"))
        thought = "\n".join(p for p in parts if p)
        return [*self._words.flush(), Text(Tag.THINK, thought)] if thought else [meta.unknown(value)]

    def _error(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        message = (
            get_str(value, "message") or get_str(get_dict(value, "error"), "message") or "an error without a message"
        )
        fatal = value.get("severity") != "warning"
        if fatal or message.startswith(_STOPPED):
            self._problem = message
        failure = explain(message)
        return [*self._words.flush(), meta.error(failure.message, failure.error_class, fatal=fatal), *failure.limit()]

    def _result(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        events = [*self._words.flush(), *_usage(get_dict(value, "stats"))]
        failed = value.get("status") != "success" or bool(value.get("error"))
        return events + self._end(value.get("error"), failed=failed)

    def _document_end(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        """The one object of the json format."""
        stats = get_dict(value, "stats")
        events = [*self._begin(value), *_tool_counts(get_dict(stats, "tools"))]
        response = get_str(value, "response")
        if response:
            events.append(Text(Tag.AI, response))
        for warning in get_list(value, "warnings"):
            if isinstance(warning, str):
                events.append(meta.error(warning, fatal=False))
                if warning.startswith(_STOPPED):
                    self._problem = warning
        return events + _usage(stats) + self._end(value.get("error"), failed=bool(value.get("error")))

    def _end(self, error: Any, *, failed: bool) -> list[TranscriptEvent]:
        self._ended = True
        retrying, self._retrying = self._retrying, None
        if failed:
            text = error if isinstance(error, str) else get_str(error, "message") or self._problem
            failure = explain(text or "the run failed", get_str(error, "type"), get_int(error, "code"))
            if failure.message in _NO_WORDS and retrying and failure.error_class is ErrorClass.FAILED:
                message = retrying["message"]
                failure = Failure(message, ErrorClass(retrying["class"]), explain(message).retry_after)
            return [*failure.limit(), meta.result(ok=False, reason=failure.message, error_class=failure.error_class)]
        if self._refused or (self._stderr.refused and not self._tools):
            reason, error_class = self._refusal()
            return [meta.result(ok=False, reason=reason, error_class=error_class)]
        if self._problem:
            return [meta.result(ok=False, reason=self._problem, error_class=explain(self._problem).error_class)]
        return [meta.result(ok=True)]

    def _refusal(self) -> tuple[str, ErrorClass]:
        names = ", ".join(self._refused) or self._stderr.refused
        return f"the agent was not allowed to use {names}", ErrorClass.PERMISSION_DENIED


def _content(value: Any) -> str:
    """Text, or the text of its parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(part if isinstance(part, str) else get_str(part, "text") or "" for part in value)
    return get_str(value, "text") or ""


def _usage(stats: dict[str, Any]) -> list[TranscriptEvent]:
    """One event a model: a run with the default model also asks a small one which model to take."""
    models = get_dict(stats, "models")
    found = [_tokens(name, get_dict(model, "tokens") or model) for name, model in models.items()]
    return [UsageEvent(usage) for usage in found or [_tokens(None, stats)] if usage]


def _tokens(model: str | None, tokens: Any) -> Usage | None:
    total = get_count(tokens, "total_tokens", "total")
    prompt = get_count(tokens, "input_tokens", "prompt")
    out = get_count(tokens, "output_tokens", "candidates")
    thoughts = get_count(tokens, "thoughts")
    if not any((total, prompt, out)):
        return None
    if thoughts is not None:
        out = (out or 0) + thoughts
        prompt = None if prompt is None else prompt + (get_count(tokens, "tool") or 0)
    elif total is not None and prompt is not None and total - prompt > (out or 0):
        out = total - prompt  # stream-json leaves the thoughts out of its output_tokens, not out of its total
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=out,
        total_tokens=total,
        model=model,
        cached_tokens=get_count(tokens, "cached"),
        reasoning_tokens=thoughts,
    )


def _tool_counts(tools: dict[str, Any]) -> list[TranscriptEvent]:
    """The json format only counts the calls, by name and result."""
    events: list[TranscriptEvent] = []
    for name, tool in get_dict(tools, "byName").items():
        count, good = get_count(tool, "count") or 0, get_count(tool, "success") or 0
        bad = get_count(tool, "fail") or 0
        for n in range(min(count, 10_000)):
            status = ToolStatus.OK if n < good else ToolStatus.FAIL if n < good + bad else ToolStatus.UNKNOWN
            took = get_count(tool, "durationMs") if count == 1 else None
            tool_id = f"{name}-{n + 1}"
            events += [ToolStart(ToolCall(tool_id, name)), ToolEnd(ToolResult(tool_id, status, took, name))]
    return events


ADAPTER = GeminiAdapter
