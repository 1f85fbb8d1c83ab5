"""GitHub Copilot CLI: `--output-format json` (events with an envelope, then one `result`), and its text.

An interrupted run ends with exit code 0 and a good result, and so does one whose tools were refused. The session's id
comes only in the last line.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ralph.agents.copilot.text import TextReader, error_class
from ralph.agents.copilot.tools import CopilotTools
from ralph.agents.copilot.usage import RunUsage
from ralph.agents.copilot.words import Words
from ralph.transcripts import meta
from ralph.transcripts.base import Capabilities
from ralph.transcripts.errors import CUT, fatal_error
from ralph.transcripts.events import Tag, Text, TranscriptEvent, decode_json
from ralph.transcripts.json_lines import JsonAdapter, get_count, get_dict, get_int, get_str
from ralph.transcripts.meta import ErrorClass

#: Known types with nothing that a reader or the judge would miss, by the part before the dot.
_QUIET = {
    "agent": "interrupted",
    "assistant": "idle intent message_start streaming_delta tool_call_delta turn_end turn_start",
    "hook": "end start",
    "model": "call_final_result call_finished call_start",
    "pending_messages": "modified",
    "permission": "completed requested",
    "session": "background_tasks_changed compaction_complete compaction_start context_changed idle"
    " mcp_server_status_changed mcp_servers_loaded mode_changed mode_notice_delivered model_change plan_changed"
    " skills_loaded title_changed tools_updated truncation usage_info",
    "skill": "invoked",
    "subagent": "completed selected started",
    "system": "message",
    "tool": "execution_partial_result execution_progress user_requested",
}
_QUIET_TYPES = frozenset(f"{area}.{name}" for area, names in _QUIET.items() for name in names.split())
#: How every line begins. One that does but is not JSON was cut, even if it is the only line.
_OPENING = '{"type":"'
_ERROR_TYPES = {
    "authentication": ErrorClass.AUTH,
    "authorization": ErrorClass.AUTH,
    "quota": ErrorClass.QUOTA,
    "context_limit": ErrorClass.CONTEXT_EXCEEDED,
}
_RETRY_REASONS = {"rate_limit": ErrorClass.RATE_LIMITED, "transient_auth_error": ErrorClass.AUTH}


class _Failure(msgspec.Struct, frozen=True):
    """The latest model call that failed."""

    message: str = "the model call failed"
    error_class: ErrorClass = ErrorClass.FAILED
    attempt: int | None = None


class CopilotAdapter(JsonAdapter):
    name = "copilot"
    capabilities = Capabilities(
        supports_roles=True, supports_tool_events=True, supports_usage_events=True, supports_prompt_hiding=True
    )

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._words = Words()
        self._tools = CopilotTools()
        self._usage = RunUsage()
        self._stdout = TextReader()
        self._stderr = TextReader(stderr=True)
        self._session = False
        # how the run has gone so far, for its result and for an output without one
        self._failure = _Failure()
        self._retrying: tuple[str, ErrorClass] | None = None
        self._error: tuple[str, ErrorClass] | None = None
        self._ended = False
        self._cut = False

    # -- lines

    def recognises(self, value: dict[str, Any]) -> bool:
        enveloped = isinstance(value.get("data"), dict) or isinstance(value.get("sessionId"), str)
        return enveloped and isinstance(value.get("type"), str)

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
        kind, data, timestamp = get_str(value, "type"), get_dict(value, "data"), get_str(value, "timestamp")
        if kind in _QUIET_TYPES:
            return []
        agent = _subagent(value, data)
        match kind:
            case "assistant.message_delta":
                self._retrying = None
                return self._words.message_delta(data, agent)
            case "assistant.reasoning_delta":
                self._retrying = None
                return self._words.reasoning_delta(data, agent)
            case "assistant.message":
                self._retrying, self._failure = None, _Failure()
                return self._words.message(data, agent) + self._usage.message(data)
            case "assistant.reasoning":
                return self._words.reasoning(data, agent)
            case "tool.execution_start":
                return self._words.flush() + self._tools.start(data, timestamp)
            case "tool.shell_output":
                return self._tools.output(data)
            case "tool.execution_complete":
                return self._tools.complete(data, timestamp)
        return self._words.flush() + self._run_event(value, data, subagent=bool(agent))

    def _run_event(self, value: dict[str, Any], data: dict[str, Any], *, subagent: bool) -> list[TranscriptEvent]:
        """The events of a run besides words and tools."""
        match value.get("type"):
            case "result":
                return self._result(value)
            case "user.message":
                # In autopilot mode the CLI continues by messages of its own, whose content is empty.
                text = get_str(data, "content", "transformedContent")
                return [Text(Tag.PROMPT, text)] if text else []
            case "session.start" | "session.resume":
                return self._name_session(data)
            case "assistant.usage":
                return self._usage.call(data)
            case "session.shutdown":
                return self._usage.shutdown(data)
            case "session.info" | "session.warning" | "system.notification":
                return self._info(data)
            case "user_input.requested" | "elicitation.requested" | "exit_plan_mode.requested":
                question = get_str(data, "question", "message", "summary") or "it asked a question"
                return self._fail(question, ErrorClass.QUESTION)
            case "user_input.completed" | "elicitation.completed" | "exit_plan_mode.completed":
                self._error = None
                return []
        return self._problem(value, data, subagent=subagent)

    def _problem(self, value: dict[str, Any], data: dict[str, Any], *, subagent: bool) -> list[TranscriptEvent]:
        reason = get_str(data, "reason")
        match value.get("type"):
            case "model.call_failure":
                message = _provider_message(get_str(data, "errorMessage"))
                kind = error_class(message, get_int(data, "statusCode"))
                self._failure = _Failure(message, kind, get_count(data, "retryAttempt"))
                return []
            case "assistant.turn_retry":
                return self._retry(_RETRY_REASONS.get(reason or "", self._failure.error_class))
            case "session.error":
                return self._session_error(data, fatal=not subagent)
            case "subagent.failed":
                return self._session_error(data, fatal=False)
            case "session.autopilot_stopped":
                return [meta.error(f"autopilot stopped: {reason or 'unknown'}", fatal=False)]
            case "abort":
                return self._fail(f"the run was aborted: {reason or 'no reason given'}", ErrorClass.FAILED)
        return [meta.unknown(value)]

    def flush(self) -> list[TranscriptEvent]:
        events = super().flush() + self._words.flush()
        if not self.structured:
            return [*events, meta.error(CUT)] if self._cut else events
        if self._ended:
            return events
        events += self._usage.end({})
        if self._retrying is not None:
            message, kind = self._retrying
            events.append(meta.error(f"{message} (it was still retrying)", kind))
        elif self._error is None:
            events.append(meta.error(CUT))
        return events

    def _broken(self, line: str, reason: str) -> list[TranscriptEvent]:
        events = super()._broken(line, reason)
        self._cut = line.startswith(_OPENING)
        return events

    # -- the run

    def _name_session(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        session = get_str(value, "sessionId")
        if session is None or self._session:
            return []
        self._session = True
        return [meta.session(session, get_str(value, "selectedModel", "model"))]

    def _info(self, data: dict[str, Any]) -> list[TranscriptEvent]:
        message = get_str(data, "message")
        match data.get("infoType"):
            case "model_retry":
                return [] if self._retrying else self._retry(self._failure.error_class)
            case "file_created":
                return []
        return [Text(Tag.SYS, message)] if message else []

    def _retry(self, kind: ErrorClass) -> list[TranscriptEvent]:
        message, attempt = self._failure.message, self._failure.attempt
        self._retrying = (message, kind)
        return [meta.retry(message, kind, attempt=None if attempt is None else attempt + 1)]

    def _session_error(self, data: dict[str, Any], *, fatal: bool) -> list[TranscriptEvent]:
        message, error_type = get_str(data, "message", "error", "errorType"), get_str(data, "errorType") or ""
        message = message or "the session failed"
        status = get_int(data, "statusCode") or (429 if error_type == "rate_limit" else None)
        kind = _ERROR_TYPES.get(error_type) or error_class(message, status)
        if not fatal:
            return [Text(Tag.SYS, message), meta.error(message, kind, fatal=False)]
        return [Text(Tag.SYS, message), *self._fail(message, kind)]

    def _fail(self, message: str, kind: ErrorClass) -> list[TranscriptEvent]:
        self._error = (message, kind)
        self._retrying = None
        return fatal_error(message, kind)

    def _result(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self._ended = True
        events = self._name_session(value) + self._usage.end(get_dict(value, "usage"))
        code = get_int(value, "exitCode")
        if self._error is not None:
            reason, kind = self._error
        elif self._tools.refused:
            reason, kind = next(iter(self._tools.refused.values())), ErrorClass.PERMISSION_DENIED
        elif code:
            reason, kind = f"exit code {code}", self._failure.error_class
        else:
            return [*events, meta.result(ok=True)]
        return [*events, meta.result(ok=False, reason=reason, error_class=kind)]


def _subagent(value: dict[str, Any], data: dict[str, Any]) -> str:
    """Which subagent an event comes from; empty for the main agent."""
    agent = value.get("agentId") or data.get("parentToolCallId") or ""
    return agent if isinstance(agent, str) else "unknown"


def _provider_message(text: str | None) -> str:
    """The message in a provider's error, which the CLI passes on as JSON."""
    try:
        return get_str(decode_json(text or ""), "message") or text or _Failure().message
    except (ValueError, RecursionError):
        return text or _Failure().message


ADAPTER = CopilotAdapter
