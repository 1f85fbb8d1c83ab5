"""GitHub Copilot CLI: `--output-format json` (events with an envelope, then one `result`), and its text.

An interrupted run ends with exit code 0 and a good result, and so does one whose tools were refused; the
session's id comes only in the last line.
"""

from __future__ import annotations

from typing import Any

from ralph.agents.copilot.lines import Line, decode_line, lenient
from ralph.agents.copilot.tools import ToolCalls
from ralph.agents.copilot.ui import UiLines, error_class, error_events
from ralph.agents.copilot.words import Words
from ralph.transcripts import meta
from ralph.transcripts.base import Capabilities
from ralph.transcripts.events import Tag, Text, TranscriptEvent, Usage, UsageEvent, decode_json
from ralph.transcripts.json_lines import JsonAdapter, Usual, get_count, get_dict, get_int, get_str
from ralph.transcripts.meta import ErrorClass

#: Known, and nothing that a reader or the judge would miss.
_NOISE = frozenset(
    [
        "agent.interrupted",
        "assistant.idle",
        "assistant.intent",
        "assistant.message_start",
        "assistant.streaming_delta",
        "assistant.tool_call_delta",
        "assistant.turn_end",
        "assistant.turn_start",
        "hook.end",
        "hook.start",
        "model.call_final_result",
        "model.call_finished",
        "model.call_start",
        "pending_messages.modified",
        "permission.completed",
        "permission.requested",
        "session.background_tasks_changed",
        "session.compaction_complete",
        "session.compaction_start",
        "session.context_changed",
        "session.idle",
        "session.mcp_server_status_changed",
        "session.mcp_servers_loaded",
        "session.mode_changed",
        "session.mode_notice_delivered",
        "session.model_change",
        "session.plan_changed",
        "session.skills_loaded",
        "session.title_changed",
        "session.tools_updated",
        "session.truncation",
        "session.usage_info",
        "skill.invoked",
        "subagent.completed",
        "subagent.selected",
        "subagent.started",
        "system.message",
        "tool.execution_partial_result",
        "tool.execution_progress",
        "tool.user_requested",
    ]
)
#: How every line begins: one that does and is no JSON was cut, even if it is the only one.
_OPENING = '{"type":"'
_CUT = "the output ends without a result"
_ERROR_TYPES = {
    "authentication": ErrorClass.AUTH,
    "authorization": ErrorClass.AUTH,
    "quota": ErrorClass.QUOTA,
    "context_limit": ErrorClass.CONTEXT_EXCEEDED,
}
_RETRY_REASONS = {"rate_limit": ErrorClass.RATE_LIMITED, "transient_auth_error": ErrorClass.AUTH}


class CopilotAdapter(JsonAdapter):
    name = "copilot"
    capabilities = Capabilities(
        supports_roles=True, supports_tool_events=True, supports_usage_events=True, supports_prompt_hiding=True
    )

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._words = Words()
        self._tools = ToolCalls()
        self._stdout = UiLines()
        self._stderr = UiLines(stderr=True)
        self._session = False
        self._usage = False
        self._output_tokens: int | None = None
        # how it went so far, for the last word and for an output without one
        self._failure = ""
        self._failure_class = ErrorClass.FAILED
        self._attempt: int | None = None
        self._retrying: tuple[str, ErrorClass] | None = None
        self._error: tuple[str, ErrorClass] | None = None
        self._ended = False
        self._cut = False

    def recognises(self, value: dict[str, Any]) -> bool:
        enveloped = isinstance(value.get("data"), dict) or isinstance(value.get("sessionId"), str)
        return enveloped and isinstance(value.get("type"), str)

    def on_text(self, line: str) -> list[TranscriptEvent]:
        if self.structured:
            return [Text(Tag.SYS, line)]
        self._cut = False
        tag, text, told = self._stdout.read(line)
        return [Text(tag, text), *told]

    def feed_stderr(self, line: str) -> list[TranscriptEvent]:
        _, text, told = self._stderr.read(line)
        return [Text(Tag.SYS, text), *told]

    def usual(self) -> Usual | None:
        return decode_line, self._usual

    def _usual(self, line: Line, events: list[TranscriptEvent]) -> bool:
        # A type and an object of data: that is what `recognises` asks for.
        self.structured = True
        if line.type in _NOISE:  # most of the lines
            return True
        more = self._event(line)
        if more is None:
            return False
        if more:
            events += more
        return True

    def on_object(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self.structured = True
        line = lenient(value)
        if line is None:
            return [meta.unknown(value)]
        events = self._event(line)
        return self._words.flush() + self._other(line, value) if events is None else events

    def _event(self, line: Line) -> list[TranscriptEvent] | None:
        """Words, tools and noise; None for what comes rarely."""
        kind, data = line.type, line.data
        if kind == "assistant.message_delta":
            self._retrying = None
            agent = line.agent if line.agent_id or data.parent_tool_call_id else ""
            return self._words.delta(data.delta_content, data.message_id, agent)
        if kind in _NOISE:
            return []
        match kind:
            case "assistant.reasoning_delta":
                self._retrying = None
                return self._words.delta(data.delta_content, data.reasoning_id, line.agent, thought=True)
            case "tool.shell_output":
                return self._tools.output(data)
            case "tool.execution_start":
                return self._words.flush() + self._tools.start(data, line.timestamp)
            case "tool.execution_complete":
                return self._tools.complete(data, line.timestamp)
            case "assistant.message":
                self._retrying, self._failure, self._failure_class = None, "", ErrorClass.FAILED
                tokens = data.output_tokens
                if type(tokens) is int:
                    self._output_tokens = (self._output_tokens or 0) + tokens
                return self._words.message(data, line.agent)
            case "assistant.reasoning":
                return self._words.reasoning(data, line.agent)
        return None

    def flush(self) -> list[TranscriptEvent]:
        events = [*super().flush(), *self._words.flush()]
        if not self.structured:
            return [*events, meta.error(_CUT)] if self._cut else events
        if self._ended:
            return events
        events += self._late_usage()
        if self._retrying is not None:
            message, kind = self._retrying
            events.append(meta.error(f"{message} (it was still retrying)", kind))
        elif self._error is None:
            events.append(meta.error(_CUT))
        return events

    def _broken(self, line: str, reason: str) -> list[TranscriptEvent]:
        events = super()._broken(line, reason)
        self._cut = line.startswith(_OPENING)
        return events

    def _other(self, line: Line, value: dict[str, Any]) -> list[TranscriptEvent]:
        """What comes rarely."""
        data = get_dict(value, "data")
        message = get_str(data, "message") or ""
        match line.type:
            case "result":
                return self._result(value)
            case "user.message":
                # Autopilot goes on by messages of the CLI's own, whose content is empty.
                text = get_str(data, "content", "transformedContent")
                return [Text(Tag.PROMPT, text)] if text else []
            case "session.start" | "session.resume":
                return self._name_session(data)
            case "model.call_failure":
                self._failure = _provider_message(get_str(data, "errorMessage"))
                self._failure_class = error_class(self._failure, get_int(data, "statusCode"))
                self._attempt = get_count(data, "retryAttempt")
                return []
            case "assistant.turn_retry":
                return self._retry(_RETRY_REASONS.get(get_str(data, "reason") or "", self._failure_class))
            case "session.info" if data.get("infoType") == "model_retry":
                return [] if self._retrying else self._retry(self._failure_class)
            case "session.info" | "session.warning" | "system.notification":
                shown = message and data.get("infoType") != "file_created"
                return [Text(Tag.SYS, message)] if shown else []
            case "session.error" | "subagent.failed":
                return self._told_error(data, fatal=line.type == "session.error" and not line.agent)
            case "session.autopilot_stopped":
                return [meta.error(f"autopilot stopped: {get_str(data, 'reason') or 'unknown'}", fatal=False)]
            case "abort":
                return self._fail(f"the run was aborted: {get_str(data, 'reason') or 'no reason given'}")
            case "user_input.requested" | "elicitation.requested" | "exit_plan_mode.requested":
                question = get_str(data, "question", "message", "summary") or "it asked a question"
                return self._fail(question, ErrorClass.QUESTION)
            case "user_input.completed" | "elicitation.completed" | "exit_plan_mode.completed":
                self._error = None
                return []
            case "assistant.usage":
                return self._tokens(data, get_str(data, "model"))
            case "session.shutdown":
                return self._shutdown(data)
        return [meta.unknown(value)]

    # -- sessions and errors

    def _name_session(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        session = get_str(value, "sessionId")
        if session is None or self._session:
            return []
        self._session = True
        return [meta.session(session, get_str(value, "selectedModel", "model"))]

    def _retry(self, kind: ErrorClass) -> list[TranscriptEvent]:
        message = self._failure or "the model call failed"
        self._retrying = (message, kind)
        attempt = None if self._attempt is None else self._attempt + 1
        return [meta.retry(message, kind, attempt=attempt)]

    def _told_error(self, data: dict[str, Any], *, fatal: bool) -> list[TranscriptEvent]:
        message = get_str(data, "message", "error", "errorType") or "the session failed"
        known = _ERROR_TYPES.get(get_str(data, "errorType") or "")
        status = get_int(data, "statusCode") or (429 if data.get("errorType") == "rate_limit" else None)
        kind = known or error_class(message, status)
        if not fatal:
            return [Text(Tag.SYS, message), meta.error(message, kind, fatal=False)]
        self._error = (message, kind)
        self._retrying = None
        return [Text(Tag.SYS, message), *error_events(message, kind)]

    def _fail(self, message: str, kind: ErrorClass = ErrorClass.FAILED) -> list[TranscriptEvent]:
        self._error = (message, kind)
        self._retrying = None
        return [meta.error(message, kind)]

    def _result(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        events = [*self._words.flush(), *self._name_session(value)]
        events += [] if self._usage else self._tokens(get_dict(value, "usage"), None)
        events += self._late_usage()
        self._ended = True
        code = get_int(value, "exitCode")
        if self._error is not None:
            reason, kind = self._error
            events.append(meta.result(ok=False, reason=reason, error_class=kind))
        elif self._tools.refused:
            reason = next(iter(self._tools.refused.values()))
            events.append(meta.result(ok=False, reason=reason, error_class=ErrorClass.PERMISSION_DENIED))
        elif code:
            events.append(meta.result(ok=False, reason=f"exit code {code}", error_class=self._failure_class))
        else:
            events.append(meta.result(ok=True))
        return events

    # -- tokens: not in the output of the recorded version, but in its log of events, and so maybe in others

    def _tokens(self, usage: dict[str, Any], model: str | None) -> list[TranscriptEvent]:
        prompt, completion = get_count(usage, "inputTokens"), get_count(usage, "outputTokens")
        if prompt is None and completion is None:
            return []
        self._usage = True
        # The CLI's own summary counts cached tokens as a part of the input.
        counted = Usage(
            prompt_tokens=prompt,
            completion_tokens=completion,
            model=model,
            cached_tokens=get_count(usage, "cacheReadTokens"),
            cache_write_tokens=get_count(usage, "cacheWriteTokens"),
            reasoning_tokens=get_count(usage, "reasoningTokens"),
        )
        return [UsageEvent(counted)]

    def _shutdown(self, data: dict[str, Any]) -> list[TranscriptEvent]:
        """Totals of the session: only where the calls were not counted one by one."""
        if self._usage:
            return []
        metrics = get_dict(data, "modelMetrics")
        return [e for model in metrics for e in self._tokens(get_dict(metrics[model], "usage"), model)]

    def _late_usage(self) -> list[TranscriptEvent]:
        """Messages may tell their own tokens: better than nothing, if there was nothing else."""
        if self._usage or self._output_tokens is None:
            return []
        self._usage = True
        return [UsageEvent(Usage(completion_tokens=self._output_tokens))]


def _provider_message(text: str | None) -> str:
    """The provider's error is handed on as the JSON that it was."""
    try:
        return get_str(decode_json(text or ""), "message") or text or "the model call failed"
    except (ValueError, RecursionError):
        return text or "the model call failed"


ADAPTER = CopilotAdapter
