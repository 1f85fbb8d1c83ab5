"""opencode and its forks (kilo): `run --format json`, one finished part per line, and the text for people.

There are no deltas and no first or last event: a run is over when a step ends for a reason other than tool calls.
"""

from __future__ import annotations

from typing import Any

from ralph.agents.opencode.errors import error_class, error_events, error_message, is_refusal
from ralph.agents.opencode.text import TextReader
from ralph.agents.opencode.usage import step_usage
from ralph.transcripts import meta
from ralph.transcripts.base import Capabilities
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
    UsageEvent,
)
from ralph.transcripts.json_lines import JsonAdapter, get_count, get_dict, get_str, get_text, is_not_text
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.recent import Recent, RecentKeys
from ralph.transcripts.tool_calls import output_text

#: How every line begins. One that does but is not JSON was cut, even if it is the only line.
_OPENING = '{"type":"'
#: Reasons of a step that ends the run, but not well.
_BAD_REASONS = {
    "length": "the model's answer was cut at its output limit",
    "content-filter": "the provider's content filter stopped the answer",
    "error": "the model's answer ended in an error",
}


class OpencodeAdapter(JsonAdapter):
    name = "opencode"
    capabilities = Capabilities(supports_roles=True, supports_tool_events=True, supports_usage_events=True)

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._session: str | None = None
        self._seen = RecentKeys[str]()  # finished parts: a later change of one repeats its event
        self._open = RecentKeys[str]()
        self._stdout = TextReader()
        self._stderr = TextReader(stderr=True)
        self._calls = 0
        self._refused = Recent[str, str]()  # by tool: a tool that is allowed later no longer counts
        # where the run stands when the output ends
        self._failed = False
        self._ended = False
        self._cut = False
        self._reason: str | None = None
        self._in_step = self._step_words = self._step_tools = False

    def recognises(self, value: dict[str, Any]) -> bool:
        return isinstance(value.get("type"), str) and ("sessionID" in value or isinstance(value.get("part"), dict))

    def on_text(self, line: str) -> list[TranscriptEvent]:
        if self.structured:
            return [Text(Tag.SYS, line)]
        self._cut = False
        return self._stdout.read(line)

    def feed_stderr(self, line: str) -> list[TranscriptEvent]:
        events = self._stderr.read(line)
        return [Text(Tag.SYS, event.text) if isinstance(event, Text) else event for event in events]

    def on_object(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self.structured = True
        return self._name_session(value) + self._event(value, get_dict(value, "part"))

    def _event(self, value: dict[str, Any], part: dict[str, Any]) -> list[TranscriptEvent]:
        match value.get("type"):
            case "step_start":
                self._in_step, self._step_words, self._step_tools = True, False, False
                self._ended = False
                return []
            case "text":
                return self._text(part, Tag.AI)
            case "reasoning":
                return self._text(part, Tag.THINK)
            case "tool_use":
                return self._tool(part)
            case "step_finish":
                return self._step_finish(part)
            case "error":
                self._failed = True
                error = value.get("error")
                return [Text(Tag.SYS, error_message(error)), *error_events(error)]
            case "retry":
                message = error_message(part.get("error"))
                return [meta.retry(message, error_class(message), attempt=get_count(part, "attempt"))]
        return [meta.unknown(value)]

    def _name_session(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        if self._session is not None:
            return []
        self._session = get_str(value, "sessionID")
        return [] if self._session is None else [meta.session(self._session)]

    def flush(self) -> list[TranscriptEvent]:
        events = super().flush()
        if not self.structured:
            return [*events, meta.error(CUT)] if self._cut else events
        if self._ended:
            return events
        if self._refused:
            events.append(self._result())  # a refused call ends the run at once, with exit code 0
        elif self._failed:
            pass  # the error was reported when it came
        elif self._in_step:
            # Some versions lose the last `step_finish`. Complete words without it are an end, nothing at all is not.
            if not self._step_words or self._cut:
                events.append(meta.error(CUT))
        elif self._reason == "stop":
            events.append(self._result())
        elif self._reason == "tool-calls":
            events.append(meta.error(CUT))
        return events

    def _broken(self, line: str, reason: str) -> list[TranscriptEvent]:
        events = super()._broken(line, reason)
        self._cut = self.structured or line.startswith(_OPENING)
        return events

    def _text(self, part: dict[str, Any], tag: Tag) -> list[TranscriptEvent]:
        text = get_text(part, "text", "content")
        if text is None:
            return [meta.unknown(part)] if is_not_text(part, "text", "content") else []
        if self._seen_before(part):
            return []
        if part.get("synthetic") is True or part.get("sessionID") not in (None, self._session):
            tag = Tag.SYS  # the CLI added it, or it comes from a subagent's session
        elif tag is Tag.AI:
            self._step_words = True
        self._ended = False
        return [Text(tag, text.removesuffix("\n"))]

    def _tool(self, part: dict[str, Any]) -> list[TranscriptEvent]:
        state = get_dict(part, "state")
        call = get_str(part, "callID", "id") or self._next_call()
        key = get_str(part, "id") or call  # some models number their calls anew in each step
        if key in self._seen:
            return []
        self._step_tools, self._ended = True, False
        name, status = get_str(part, "tool") or "tool", _status(state)
        if name == "invalid":  # opencode's replacement for a call to a tool that does not exist
            name, status = get_str(get_dict(state, "input"), "tool") or name, ToolStatus.FAIL
        events: list[TranscriptEvent] = []
        if key not in self._open:
            arguments = state.get("input")
            events.append(ToolStart(ToolCall(call, name, arguments if isinstance(arguments, dict) else None)))
        if state.get("status") in ("running", "pending"):
            self._open.add(key)
            return events
        self._open.discard(key)
        self._seen.add(key)
        error = output_text(state.get("error"))
        output = error or output_text(state.get("output"))
        if output:
            events.append(ToolOutput(ToolRef(call, name), output))
        if is_refusal(error):
            self._refused[name] = error
        elif status is ToolStatus.OK:
            self._refused.pop(name, None)
        return [*events, ToolEnd(ToolResult(call, status, _duration(get_dict(state, "time")), name))]

    def _next_call(self) -> str:
        self._calls += 1
        return f"call-{self._calls}"

    def _step_finish(self, part: dict[str, Any]) -> list[TranscriptEvent]:
        if self._seen_before(part):
            return []
        self._in_step = False
        self._reason = get_str(part, "reason")
        usage = step_usage(part)
        events: list[TranscriptEvent] = [] if usage is None else [UsageEvent(usage)]
        bad = _BAD_REASONS.get(self._reason or "")
        if bad is not None:
            self._ended = True
            events.append(meta.result(ok=False, reason=bad, error_class=ErrorClass.FAILED))
        elif self._reason == "stop" and not self._step_tools:
            # With tool calls in the step, "stop" is a provider's mistake and another step follows.
            events.append(self._result())
        return events

    def _result(self) -> Meta:
        self._ended = True
        if self._refused:
            reason = next(iter(self._refused.values()))
            return meta.result(ok=False, reason=reason, error_class=ErrorClass.PERMISSION_DENIED)
        self._failed = False
        return meta.result(ok=True, reason=self._reason)

    def _seen_before(self, part: dict[str, Any]) -> bool:
        key = get_str(part, "id")
        if key is None:
            return False
        seen = key in self._seen
        self._seen.add(key)
        return seen


def _status(state: dict[str, Any]) -> ToolStatus:
    match state.get("status"):
        case "completed":
            # A command is "completed" whatever its exit code, which is null after a signal.
            return ToolStatus.OK if get_dict(state, "metadata").get("exit", 0) == 0 else ToolStatus.FAIL
        case "error":
            return ToolStatus.FAIL
    return ToolStatus.UNKNOWN


def _duration(time: dict[str, Any]) -> int | None:
    start, end = get_count(time, "start"), get_count(time, "end")
    return end - start if start is not None and end is not None and end >= start else None


ADAPTER = OpencodeAdapter
