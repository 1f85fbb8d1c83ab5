"""Cline CLI: `--json` (before release 3: the messages of its chat), the coloured text for people, and ACP.

Words and thoughts come in fragments, then whole; the last message is repeated twice more. A tool that needs a person's
approval fails with a sentence from the CLI, and the run still "completes".
"""

from __future__ import annotations

import re
from typing import Any

from ralph.agents.cline.messages import MessageReader, is_message
from ralph.agents.cline.tools import tool_output, tool_refusal, tool_status
from ralph.agents.cline.usage import RunUsage
from ralph.transcripts import meta
from ralph.transcripts.acp import AcpReader, is_rpc
from ralph.transcripts.base import Capabilities
from ralph.transcripts.classify import classify
from ralph.transcripts.errors import CUT, fatal_error
from ralph.transcripts.events import Tag, Text, ToolStatus, TranscriptEvent, decode_json
from ralph.transcripts.json_lines import JsonAdapter, get_count, get_dict, get_str, strip_escapes
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.repeats import Streamed
from ralph.transcripts.tool_calls import ToolCalls

_TYPES = ("hook_event", "agent_event", "run_result", "run_aborted", "error")
#: Parts of the CLI's own names for errors.
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
_CALLS_FAILED = re.compile(r"\d+ tool call\(s\) failed")
#: Lines of the text format that the agent did not write: a thought, a call, and the shortened output below it.
_THINKING = "[thinking] "
_CALL = re.compile(r"\[(?:[a-z]+(?:_[a-z]+)+|editor|skills)\] ")
_OUTPUT = "   ⎿ "
_DIM = "\x1b[2m"
_STDERR = "error: "


class ClineAdapter(JsonAdapter):
    name = "cline"
    capabilities = Capabilities(supports_roles=True, supports_tool_events=True, supports_usage_events=True)

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._acp = AcpReader()
        self._messages = MessageReader()
        self._words = Streamed(Tag.AI)
        self._thoughts = Streamed(Tag.THINK)
        self._subagents = Streamed(Tag.SYS)
        self._usage = RunUsage()
        self._tools = ToolCalls()
        self._done: str | None = None
        self._problem: ErrorClass | None = None
        self._ended = False

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
                events += self._fatal(get_str(value, "message"))
        return events

    def on_object(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self.structured = True
        match value.get("type"):
            case "agent_event":
                return self._agent_event(value)
            case "hook_event":
                return []  # its ids are those of the conversation, not of a session that can be resumed
            case "run_result":
                return self._stop_words() + self._run_result(value)
            case "run_aborted":
                self._ended = True
                reason = "the run was aborted: " + (get_str(value, "reason", "message") or "no reason given")
                return [*self._stop_words(), meta.result(ok=False, reason=reason, error_class=ErrorClass.FAILED)]
            case "error":
                return self._fatal(get_str(value, "message"))
        if is_message(value):
            return self._messages.feed(value)
        return self._acp.feed(value) if is_rpc(value) else [meta.unknown(value)]

    def _agent_event(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        event = get_dict(value, "event")
        subagent = bool(value.get("parentAgentId") or event.get("parentAgentId"))
        match event.get("type"):
            case "content_start" | "content_end" as kind:
                return self._content(event, ended=kind == "content_end", subagent=subagent)
            case "content_update":
                return []  # of a tool's output, which comes whole at its end
            case "iteration_start" | "iteration_end":
                return self._thoughts.restart() + self._subagents.restart() + self._words.restart()
            case "usage":
                return self._usage.call(event)
            case "done":
                if not subagent:
                    self._done = get_str(event, "reason") or "completed"
                return []
            case "error":
                return self._error(event, subagent=subagent)
        return [meta.unknown(value)]

    def flush(self) -> list[TranscriptEvent]:
        events = super().flush() + self._stop_words()
        if self._acp.used:
            return events + self._acp.flush()
        if self._messages.used:
            return events + self._messages.flush()
        if self.structured and not self._ended:
            if self._done is not None:
                return events + self._end(self._done, None)
            if self._problem is None:
                return [*events, meta.error(CUT)]
        return events

    # -- words and tools

    def _content(self, event: dict[str, Any], *, ended: bool, subagent: bool) -> list[TranscriptEvent]:
        match event.get("contentType"):
            case "text":
                return self._spoken(self._subagents if subagent else self._words, get_str(event, "text"), ended=ended)
            case "reasoning":
                return self._spoken(self._thoughts, get_str(event, "reasoning", "text"), ended=ended)
            case "tool":
                return self._stop_words() + self._tool(event, ended=ended)
        return [meta.unknown(event)]

    def _spoken(self, stream: Streamed, text: str | None, *, ended: bool) -> list[TranscriptEvent]:
        if text is None:
            return []
        if ended:
            return stream.full(text)
        # The whole thought comes only after the words that follow it.
        before = [] if stream is self._thoughts else self._thoughts.stop()
        return before + stream.fragment(text)

    def _stop_words(self) -> list[TranscriptEvent]:
        return self._thoughts.stop() + self._subagents.stop() + self._words.stop()

    def _tool(self, event: dict[str, Any], *, ended: bool) -> list[TranscriptEvent]:
        call, arguments = get_str(event, "toolCallId"), event.get("input")
        if call is None:
            return [meta.unknown(event)]
        name = get_str(event, "toolName") or "tool"
        events = self._tools.start(call, name, arguments if isinstance(arguments, dict) else None)
        if not ended:
            return events
        output, error = event.get("output"), event.get("error")
        status, duration = tool_status(output, error), get_count(event, "durationMs")
        refusal = tool_refusal(output, error) if status is ToolStatus.FAIL else ""
        text = tool_output(output, error)
        return events + self._tools.end(call, text, status, duration_ms=duration, refusal=refusal)

    # -- the run

    def _error(self, event: dict[str, Any], *, subagent: bool) -> list[TranscriptEvent]:
        error = event.get("error")
        message = error if isinstance(error, str) else get_str(error, "message") or "cline failed"
        if event.get("recoverable") is True or subagent:
            # Mostly failed calls, which have been reported already. The message may quote a tool.
            return [] if _CALLS_FAILED.match(message) else [meta.error(message, fatal=False)]
        return self._fatal(message, get_str(event, "errorClass"))

    def _fatal(self, message: str | None, kind: str | None = None) -> list[TranscriptEvent]:
        message = message or "cline failed"
        named = (error_class for part, error_class in _CLASSES.items() if part in (kind or "").lower())
        self._problem = next(named, None) or classify(message)
        return fatal_error(message, self._problem)

    def _run_result(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        total = get_dict(value, "aggregateUsage") or get_dict(value, "usage")
        reason, text = get_str(value, "finishReason") or "no reason given", get_str(value, "text")
        events = self._usage.total(total, get_str(get_dict(value, "model"), "id"))
        if reason == "completed" and text and not self._words.said.repeats(text):
            events += self._words.full(text)
        return events + self._end(reason, text)

    def _end(self, reason: str, text: str | None) -> list[TranscriptEvent]:
        self._ended = True
        refused = self._tools.refused
        if reason == "completed" and not refused:
            return [meta.result(ok=True, reason=reason)]
        if reason == "completed":
            first = next(iter(refused.values())).partition(". ")[0]
            message = f"the agent was not allowed to use {', '.join(refused)}: {first}"
            return [meta.result(ok=False, reason=message, error_class=ErrorClass.PERMISSION_DENIED)]
        if reason == "error" and text:
            return [meta.result(ok=False, reason=text, error_class=self._problem or classify(text))]
        message = f"the run ended with '{reason}'"
        return [meta.result(ok=False, reason=message, error_class=self._problem or ErrorClass.FAILED)]


ADAPTER = ClineAdapter
