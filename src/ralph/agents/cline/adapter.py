"""Cline CLI: `--json` (before release 3: the messages of its chat), the coloured text for people, and ACP.

Words and thoughts come in fragments, each with all that came before, and whole at their end; the last message comes
twice more. A tool that needs a person's approval fails with a sentence of the CLI's, and the run still "completes".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from ralph.agents.cline.lines import (
    AgentEvent,
    Counted,
    Done,
    Ended,
    HookEvent,
    Line,
    Started,
    StepEnded,
    StepStarted,
    decode_line,
)
from ralph.agents.cline.messages import MessageReader, is_message
from ralph.agents.cline.usage import Spent
from ralph.transcripts import meta
from ralph.transcripts.acp import AcpReader, is_rpc
from ralph.transcripts.base import Capabilities
from ralph.transcripts.classify import classify, retry_after
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
    decode_json,
)
from ralph.transcripts.json_lines import JsonAdapter, Usual, get_count, get_dict, get_str, strip_escapes
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.recent import Recent, RecentKeys
from ralph.transcripts.repeats import Streamed

if TYPE_CHECKING:
    from collections.abc import Callable

_CUT = "the output ends without a result"
_TYPES = ("hook_event", "agent_event", "run_result", "run_aborted", "error")
_CLASSES = {
    "auth": ErrorClass.AUTH,
    "rate_limit": ErrorClass.RATE_LIMITED,
    "quota": ErrorClass.QUOTA,
    "billing": ErrorClass.QUOTA,
    "balance": ErrorClass.QUOTA,
    "context": ErrorClass.CONTEXT_EXCEEDED,
    "overload": ErrorClass.OVERLOADED,
    "server": ErrorClass.OVERLOADED,
}
_LIMITS = (ErrorClass.RATE_LIMITED, ErrorClass.QUOTA, ErrorClass.OVERLOADED)
_REFUSED = re.compile(r'Tool "[^"]*" requires approval|Command not executed: |.*\bblocked in plan mode')
_CALLS_FAILED = re.compile(r"\d+ tool call\(s\) failed")
#: The lines of the text format that are not the agent's: a call, with the shortened output below it.
_THINKING = "[thinking] "
_CALL = re.compile(r"\[(?:[a-z]+(?:_[a-z]+)+|editor|skills)\] ")
_OUTPUT = "   ⎿ "
_DIM = "\x1b[2m"
_STDERR = "error: "

#: An enum's members are slow to look up.
_OK, _FAIL = ToolStatus.OK, ToolStatus.FAIL


class ClineAdapter(JsonAdapter):
    name = "cline"
    capabilities = Capabilities(supports_roles=True, supports_tool_events=True, supports_usage_events=True)

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._acp = AcpReader()
        self._messages = MessageReader()
        self._words = Streamed(Tag.AI)
        self._thoughts = Streamed(Tag.THINK)
        self._others = Streamed(Tag.SYS)
        self._spent = Spent()
        self._tools = Recent[str, str]()
        self._finished = RecentKeys[str]()
        self._refused = Recent[str, str]()
        self._done: str | None = None
        self._problem: ErrorClass | None = None
        self._ended = False
        self._handlers: dict[str, Callable[[dict[str, Any], bool], list[TranscriptEvent]]] = {
            "content_start": self._content,
            "content_end": self._content,
            "content_update": self._nothing,  # a tool's output, which comes whole at its end
            "iteration_start": self._iteration,
            "iteration_end": self._iteration,
            "usage": self._usage,
            "done": self._agent_done,
            "error": self._agent_error,
        }

    # -- lines

    def recognises(self, value: dict[str, Any]) -> bool:
        return is_rpc(value) or is_message(value) or ("ts" in value and value.get("type") in _TYPES)

    def on_text(self, line: str) -> list[TranscriptEvent]:
        if self.structured:
            return self.feed_stderr(line)  # a terminal shows both streams as one
        bare = strip_escapes(line)
        if bare.startswith(_THINKING):
            return [Text(Tag.THINK, bare.removeprefix(_THINKING))]
        if bare.startswith(_OUTPUT) or _CALL.match(bare):
            return [Text(Tag.TOOL, bare)]
        if line.startswith(_DIM):
            return [Text(Tag.THINK, bare)]  # a thought of several lines
        return [Text(Tag.AI, line)]

    def feed_stderr(self, line: str) -> list[TranscriptEvent]:
        events: list[TranscriptEvent] = [Text(Tag.SYS, line)]
        bare = strip_escapes(line)
        if bare.startswith(_STDERR):
            events += self._fatal(bare.removeprefix(_STDERR))
        elif bare.startswith('{"ts"'):
            try:
                value = decode_json(bare)
            except (ValueError, RecursionError):
                return events
            if get_str(value, "type") == "error":
                events += self._fatal(get_str(value, "message") or "cline failed")
        return events

    def _usual(self, line: Line, events: list[TranscriptEvent]) -> bool:
        # Not by isinstance, which is slow to say no.
        if type(line) is not AgentEvent:
            return type(line) is HookEvent
        event = line.event
        if type(event) is Started:
            kind = event.content_type
            if kind == "text":
                if self._thoughts.parts and event.text:
                    events += self._thoughts.stop()  # a thought is told whole only after the words
                other = line.parent_agent_id or event.parent_agent_id
                (self._others if other else self._words).add(event.text or "", events)
            elif kind == "reasoning":
                self._thoughts.add(event.reasoning or event.text or "", events)
            elif kind != "tool" or not event.tool_call_id or not event.tool_name:
                return False
            else:
                events += self._stop_words()
                self._start_call(events, event.tool_call_id, event.tool_name, event.input)
        elif type(event) is Ended:
            return self._usual_end(line, event, events)
        elif type(event) is StepStarted or type(event) is StepEnded:
            events += self._restart()
        elif type(event) is Counted:
            counts = (event.input_tokens, event.output_tokens, event.cache_read_tokens, event.cache_write_tokens)
            events += self._spent.call(*counts, event.total_cost)
        elif type(event) is Done:
            other = line.parent_agent_id or event.parent_agent_id
            events += self._agent_done({"reason": event.reason}, bool(other))
        return True

    def _usual_end(self, line: AgentEvent, event: Ended, events: list[TranscriptEvent]) -> bool:
        """False for an event that must be read as an object."""
        kind = event.content_type
        if kind == "tool":
            call, name = event.tool_call_id, event.tool_name
            if not call or not name:
                return False
            events += self._stop_words()
            self._end_call(events, call, name, event.input, event.output, event.error, event.duration_ms)
        elif kind == "text":
            other = line.parent_agent_id or event.parent_agent_id
            events += self._spoken(self._others if other else self._words, event.text, ended=True)
        elif kind == "reasoning":
            events += self._spoken(self._thoughts, event.reasoning or event.text, ended=True)
        else:
            return False
        return True

    def on_object(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self.structured = True
        kind = value.get("type")
        if kind == "agent_event":
            return self._agent_event(value)
        match kind:
            case "hook_event":
                return []  # its ids are of the conversation, not of the session that could be resumed
            case "run_result":
                return [*self._stop_words(), *self._run_result(value)]
            case "run_aborted":
                self._ended = True
                reason = "the run was aborted: " + (get_str(value, "reason", "message") or "no reason given")
                return [*self._stop_words(), meta.result(ok=False, reason=reason, error_class=ErrorClass.FAILED)]
            case "error":
                return self._fatal(get_str(value, "message") or "cline failed")
        if is_message(value):
            return self._messages.feed(value)
        return self._acp.feed(value) if is_rpc(value) else [meta.unknown(value)]

    def flush(self) -> list[TranscriptEvent]:
        events = [*super().flush(), *self._stop_words()]
        if self._acp.used:
            return events + self._acp.flush()
        if self._messages.used:
            return events + self._messages.flush()
        if self.structured and not self._ended:
            if self._done is not None:
                events += self._end(self._done, None)
            elif self._problem is None:
                events.append(meta.error(_CUT))
        return events

    def _agent_event(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        event = value.get("event")
        kind = event.get("type") if isinstance(event, dict) else None
        handler = self._handlers.get(kind) if isinstance(kind, str) else None
        if handler is None or not isinstance(event, dict):
            return [meta.unknown(value)]
        return handler(event, bool(value.get("parentAgentId") or event.get("parentAgentId")))

    # -- words and tools

    def _content(self, event: dict[str, Any], other: bool) -> list[TranscriptEvent]:
        ended = event["type"] == "content_end"
        match event.get("contentType"):
            case "text":
                return self._spoken(self._others if other else self._words, get_str(event, "text"), ended)
            case "reasoning":
                return self._spoken(self._thoughts, get_str(event, "reasoning", "text"), ended)
            case "tool":
                return self._tool(event, ended)
        return [meta.unknown(event)]

    def _spoken(self, stream: Streamed, text: str | None, ended: bool) -> list[TranscriptEvent]:
        if not text:
            return []
        if ended:
            return stream.full(text)
        if stream is self._thoughts or not self._thoughts.parts:
            return stream.fragment(text)
        return self._thoughts.stop() + stream.fragment(text)  # a thought is told whole only after the words

    def _iteration(self, event: dict[str, Any], other: bool) -> list[TranscriptEvent]:
        return self._restart()

    def _restart(self) -> list[TranscriptEvent]:
        events = self._thoughts.restart()
        events += self._others.restart()
        events += self._words.restart()
        return events

    def _nothing(self, event: dict[str, Any], other: bool) -> list[TranscriptEvent]:
        return []

    def _stop_words(self) -> list[TranscriptEvent]:
        events = self._thoughts.stop() if self._thoughts.parts else []
        if self._others.parts:
            events += self._others.stop()
        if self._words.parts:
            events += self._words.stop()
        return events

    def _tool(self, event: dict[str, Any], ended: bool) -> list[TranscriptEvent]:
        events = self._stop_words()
        call, name = get_str(event, "toolCallId"), get_str(event, "toolName") or "tool"
        given = event.get("input")
        arguments = given if isinstance(given, dict) else None
        if call is None:
            events.append(meta.unknown(event))
        elif ended:
            duration = get_count(event, "durationMs")
            self._end_call(events, call, name, arguments, event.get("output"), event.get("error"), duration)
        else:
            self._start_call(events, call, name, arguments)
        return events

    def _start_call(self, events: list[TranscriptEvent], call: str, name: str, given: dict[str, Any] | None) -> None:
        if call not in self._tools and call not in self._finished:
            self._tools[call] = name
            events.append(ToolStart(ToolCall(call, name, given)))

    def _end_call(
        self,
        events: list[TranscriptEvent],
        call: str,
        name: str,
        given: dict[str, Any] | None,
        output: Any,
        error: Any,
        duration_ms: int | None,
    ) -> None:
        if call in self._finished:
            return
        if call not in self._tools:
            self._start_call(events, call, name, given)
        self._finished.add(call)
        name = self._tools.pop(call)
        part = output[0] if type(output) is list and len(output) == 1 else output
        if not error and _has_printed(part) and (part["success"] or part is not output):
            # One command, or another tool that went well, as in nearly all calls.
            status = _OK if part["success"] else _FAIL
            if self._refused and status is _OK:
                self._refused.pop(name, None)
            events.append(ToolOutput(ToolRef(call, name), part["result"]))
            events.append(ToolEnd(ToolResult(call, status, duration_ms, name)))
            return
        status = _status(output, error)
        told = error if isinstance(error, str) else ""
        if status is ToolStatus.FAIL:
            refusal = get_str(output, "error") or told
            if _REFUSED.match(refusal):
                self._refused[name] = refusal
        elif status is ToolStatus.OK:
            self._refused.pop(name, None)
        text = _output(output) or told
        if text:
            events.append(ToolOutput(ToolRef(call, name), text))
        events.append(ToolEnd(ToolResult(call, status, duration_ms, name)))

    # -- the run

    def _usage(self, event: dict[str, Any], other: bool) -> list[TranscriptEvent]:
        return self._spent.call_event(event)

    def _agent_done(self, event: dict[str, Any], other: bool) -> list[TranscriptEvent]:
        if not other:
            self._done = get_str(event, "reason") or "completed"
        return []

    def _agent_error(self, event: dict[str, Any], other: bool) -> list[TranscriptEvent]:
        error = event.get("error")
        message = error if isinstance(error, str) else get_str(error, "message") or "cline failed"
        if event.get("recoverable") is True or other:
            # Mostly calls that failed, whose ends have told it already. Its words may be a tool's.
            return [] if _CALLS_FAILED.match(message) else [meta.error(message, fatal=False)]
        return self._fatal(message, get_str(event, "errorClass"))

    def _fatal(self, message: str, kind: str | None = None) -> list[TranscriptEvent]:
        self._problem = error_class = _error_class(message, kind)
        return [*_limit(message, error_class), meta.error(message, error_class)]

    def _run_result(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        model = get_str(get_dict(value, "model"), "id")
        total = get_dict(value, "aggregateUsage") or get_dict(value, "usage")
        reason, text = get_str(value, "finishReason") or "no reason given", get_str(value, "text")
        events = self._spent.total(total, model)
        if reason == "completed" and text and not self._words.said.repeats(text):
            events += self._words.full(text)
        return events + self._end(reason, text)

    def _end(self, reason: str, text: str | None) -> list[TranscriptEvent]:
        self._ended = True
        if reason == "completed":
            if not self._refused:
                return [meta.result(ok=True, reason=reason)]
            names, first = ", ".join(self._refused), next(iter(self._refused.values()))
            message = f"the agent was not allowed to use {names}: {first.partition('. ')[0]}"
            return [meta.result(ok=False, reason=message, error_class=ErrorClass.PERMISSION_DENIED)]
        if reason == "error" and text:
            return [meta.result(ok=False, reason=text, error_class=self._problem or classify(text))]
        message = f"the run ended with '{reason}'"
        return [meta.result(ok=False, reason=message, error_class=self._problem or ErrorClass.FAILED)]


def _error_class(message: str, kind: str | None) -> ErrorClass:
    """What the CLI calls it, where it knows; else by the message, which is the provider's."""
    if kind:
        for part, error_class in _CLASSES.items():
            if part in kind.lower():
                return error_class
    return classify(message)


def _limit(message: str, error_class: ErrorClass) -> list[TranscriptEvent]:
    seconds = retry_after(message) if error_class in _LIMITS else None
    return [] if seconds is None else [meta.rate_limit(message=message, retry_after=seconds)]


def _has_printed(part: Any) -> bool:
    """Whether this is a command that ended, with output."""
    return (
        type(part) is dict
        and type(part.get("success")) is bool
        and type(part.get("result")) is str
        and part["result"] != ""
    )


def _status(output: Any, error: Any) -> ToolStatus:
    """A call runs several commands: it failed if one did. Tools that give no such mark tell an error, or went well."""
    if error:
        return ToolStatus.FAIL
    parts = output if isinstance(output, list) else [output]
    marks = [part["success"] for part in parts if isinstance(part, dict) and "success" in part]
    if False in marks:
        return ToolStatus.FAIL
    return ToolStatus.OK if output is not None and all(mark is True for mark in marks) else ToolStatus.UNKNOWN


def _output(output: Any) -> str:
    """What the commands printed, or the sentence about it; several are told apart by what was run."""
    if output is None or isinstance(output, str):
        return output or ""
    if isinstance(output, dict):
        return _part(output)
    if isinstance(output, list) and len(output) > 1 and all(isinstance(part, dict) for part in output):
        return "\n".join(f"$ {get_str(part, 'query') or ''}\n{_part(part)}" for part in output)
    if isinstance(output, list) and len(output) == 1:
        return _output(output[0])
    return _encode(output) if output else ""


def _part(part: dict[str, Any]) -> str:
    result = part.get("result")
    if isinstance(result, str):
        return result or get_str(part, "error") or ""
    return get_str(part, "error", "text") or _encode(part)


def _encode(value: Any) -> str:
    return msgspec.json.encode(value).decode()


ADAPTER = ClineAdapter
