"""Gemini CLI: stream-json, json and text.

With json, the object of a failed run goes to stderr; with text, every error does. Thoughts are never printed.
"""

from __future__ import annotations

import re
from typing import Any

from ralph.agents.gemini.errors import FATAL_ANYWHERE, GUARDED_TOOLS, StderrReader, explain
from ralph.transcripts import meta
from ralph.transcripts.base import Capabilities
from ralph.transcripts.deltas import DeltaLines
from ralph.transcripts.errors import CUT
from ralph.transcripts.events import Tag, Text, ToolStatus, TranscriptEvent, Usage, UsageEvent
from ralph.transcripts.json_lines import JsonAdapter, get_count, get_dict, get_int, get_list, get_str
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.tool_calls import ToolCalls

#: Warnings after which the CLI stops and still reports success.
_STOPPED = ("Loop detected", "Maximum session turns")
#: The CLI's own lines, which a terminal shows among the agent's words.
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
#: The whole output of a command that failed silently; the CLI calls any command that ran a success.
_EXITED = re.compile(r"Command (?:exited with code: (?!0$)\d+|terminated by signal: \S+|failed: .*)")
#: All that 0.20 (json) and 0.45 (stream-json) say at the end; the retries before it name the cause.
_NO_CAUSE = ("[object Object]", "An unknown error occurred.")
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
        self._tools = ToolCalls()
        self._called = False
        self._unnamed = 0  # calls without an id
        self._session: str | None = None
        self._spoke = False
        self._ended = False
        self._problem: str | None = None

    def recognises(self, value: dict[str, Any]) -> bool:
        match value:
            case {"type": "init"} | {"session_id": _, "error": {}} | {"response": _, "stats": _}:
                return True
            case {"type": "message" | "tool_use" | "tool_result" | "thought" | "error" | "result", "timestamp": _}:
                return True
        return False

    def on_object(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self.structured = True
        if value.get("type") == "message":
            return self._message(value)
        return self._words.flush() + self._other(value)

    def _other(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        match value.get("type"):
            case "init":
                return self._begin(value)
            case "thought":
                return [_thought(value)]
            case "tool_use":
                return self._tool_use(value)
            case "tool_result":
                return self._tool_result(value)
            case "error":
                return self._error(value)
            case "result":
                return self._result(value)
        if "response" in value or isinstance(value.get("error"), dict):
            return self._document_end(value)
        return [meta.unknown(value)]

    # -- lines that are not JSON

    def on_text(self, line: str) -> list[TranscriptEvent]:
        if self.structured:
            return self.feed_stderr(line)  # a terminal merges the two streams
        if line.startswith(_NOISE):
            return [Text(Tag.SYS, line)]
        if not self._spoke and line.strip():
            if line.startswith(FATAL_ANYWHERE):
                return self.feed_stderr(line)
            self._spoke = True
        return [Text(Tag.AI, line)]

    def feed_stderr(self, line: str) -> list[TranscriptEvent]:
        events = [Text(Tag.SYS, line), *self._stderr.feed(line)]
        last = self._stderr.last_object
        if last is not None:
            self._stderr.last_object = None
            if not self._ended:  # some versions print it twice
                events += self._document_end(last)
        return events

    def flush(self) -> list[TranscriptEvent]:
        if len(self._document) > 1 and self._document[1].lstrip().startswith(_DOCUMENT_START):
            self.structured = True  # the json format, cut short
        events = super().flush() + self._words.flush() + self._stderr.flush_held()
        if self._ended:
            return events
        retried = self._stderr.retried
        if self.structured and retried:
            events.append(meta.error(f"{CUT} (it was retrying: {retried.message})", retried.error_class))
        elif self.structured:
            events.append(meta.error(CUT))
        elif self._stderr.refused:
            events.append(meta.error(self._refusal(), ErrorClass.PERMISSION_DENIED))
        return events

    # -- stream-json

    def _begin(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        session = get_str(value, "session_id")
        if session is None or self._session is not None:
            return []
        self._session = session
        return [meta.session(session, get_str(value, "model"))]

    def _message(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        content = _content(value.get("content"))
        match value.get("role"):
            case "assistant" | "model":
                self._stderr.recovered()
                if value.get("delta") is True:
                    return self._words.feed(content)
                return self._words.whole(content) if content else self._words.flush()
            case "user":
                return [*self._words.flush(), Text(Tag.PROMPT, content)]
        return [*self._words.flush(), Text(Tag.SYS, content)]

    def _tool_use(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self._stderr.recovered()
        self._called = True
        call = get_str(value, "tool_id", "id")
        if call is None:
            self._unnamed += 1
            call = f"call-{self._unnamed}"
        name = get_str(value, "tool_name", "name") or "tool"
        return self._tools.start(call, name, get_dict(value, "parameters") or None)

    def _tool_result(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self._called = True
        call = get_str(value, "tool_id", "id") or f"call-{self._unnamed}"
        name, error = self._tools.name(call), get_dict(value, "error")
        output = _content(value.get("output")) or get_str(error, "message") or ""
        refusal = ""
        match value.get("status"):
            case "success" if name == "run_shell_command" and _EXITED.fullmatch(output):
                status = ToolStatus.FAIL
            case "success":
                status = ToolStatus.OK
            case "error" | "cancelled":
                status = ToolStatus.FAIL
                refusal = (output or "refused") if _is_refusal(name, error.get("type")) else ""
            case _:
                status = ToolStatus.UNKNOWN
        return self._tools.end(call, output, status, duration_ms=get_count(value, "duration_ms"), refusal=refusal)

    def _error(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        message = get_str(value, "message") or get_str(get_dict(value, "error"), "message")
        message = message or "an error without a message"
        fatal = value.get("severity") != "warning"
        if fatal or message.startswith(_STOPPED):
            self._problem = message
        failure = explain(message)
        return [meta.error(failure.message, failure.error_class, fatal=fatal), *failure.limit()]

    def _result(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        error = value.get("error")
        failed = value.get("status") != "success" or bool(error)
        return _usage(get_dict(value, "stats")) + self._end(error, failed=failed)

    # -- json

    def _document_end(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        """The only object of the json format."""
        stats, error = get_dict(value, "stats"), value.get("error")
        events = [*self._begin(value), *_tool_counts(get_dict(stats, "tools"))]
        response = get_str(value, "response")
        if response:
            events.append(Text(Tag.AI, response))
        for warning in get_list(value, "warnings"):
            if isinstance(warning, str):
                events.append(meta.error(warning, fatal=False))
                if warning.startswith(_STOPPED):
                    self._problem = warning
        return events + _usage(stats) + self._end(error, failed=bool(error))

    # -- the verdict of either format

    def _end(self, error: Any, *, failed: bool) -> list[TranscriptEvent]:
        self._ended = True
        if failed:
            text = error if isinstance(error, str) else get_str(error, "message") or self._problem
            failure = explain(text or "the run failed", get_str(error, "type"), get_int(error, "code"))
            retried = self._stderr.retried
            if retried and failure.message in _NO_CAUSE and failure.error_class is ErrorClass.FAILED:
                failure = retried
            return [*failure.limit(), meta.result(ok=False, reason=failure.message, error_class=failure.error_class)]
        if self._tools.refused or (self._stderr.refused and not self._called):
            return [meta.result(ok=False, reason=self._refusal(), error_class=ErrorClass.PERMISSION_DENIED)]
        if self._problem:
            return [meta.result(ok=False, reason=self._problem, error_class=explain(self._problem).error_class)]
        return [meta.result(ok=True)]

    def _refusal(self) -> str:
        return f"the agent was not allowed to use {', '.join(self._tools.refused) or self._stderr.refused}"


def _is_refusal(name: str | None, error: Any) -> bool:
    return error == "policy_violation" or (error == "tool_not_registered" and name in GUARDED_TOOLS)


def _thought(value: dict[str, Any]) -> TranscriptEvent:
    parts = (get_str(value, "subject"), get_str(value, "description", "content", "text"))
    thought = "\n".join(p for p in parts if p)
    return Text(Tag.THINK, thought) if thought else meta.unknown(value)


def _content(value: Any) -> str:
    """A string, or the joined text of a list of parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(part if isinstance(part, str) else get_str(part, "text") or "" for part in value)
    return get_str(value, "text") or ""


def _usage(stats: dict[str, Any]) -> list[TranscriptEvent]:
    """One event per model: with the default settings, a small model chooses which model answers."""
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
        out = total - prompt  # stream-json counts thoughts in the total, but not in output_tokens
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=out,
        total_tokens=total,
        model=model,
        cached_tokens=get_count(tokens, "cached"),
        reasoning_tokens=thoughts,
    )


def _tool_counts(tools: dict[str, Any]) -> list[TranscriptEvent]:
    """The json format does not list calls; it counts them by name and result."""
    calls, events = ToolCalls(), list[TranscriptEvent]()
    for name, tool in get_dict(tools, "byName").items():
        count, good, bad = (get_count(tool, key) or 0 for key in ("count", "success", "fail"))
        for n in range(min(count, 10_000)):
            status = ToolStatus.OK if n < good else ToolStatus.FAIL if n < good + bad else ToolStatus.UNKNOWN
            took = get_count(tool, "durationMs") if count == 1 else None
            call = f"{name}-{n + 1}"
            events += calls.start(call, name, None) + calls.end(call, "", status, duration_ms=took)
    return events


ADAPTER = GeminiAdapter
