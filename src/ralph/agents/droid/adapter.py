"""Factory Droid: `exec -o stream-json` (and debug), json, text, and ACP.

Its `init` looks like Claude's, the rest does not: messages, thoughts and calls come whole, and thoughts twice. Why an
API call failed is told in stream-json alone; in json and text it is "Exec failed", or even the agent's last words.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from ralph.agents.droid import lines
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
    Usage,
    UsageEvent,
)
from ralph.transcripts.json_lines import JsonAdapter, Usual, get_count, get_dict, get_str, strip_escapes
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.recent import Recent, RecentKeys
from ralph.transcripts.repeats import Said

if TYPE_CHECKING:
    from collections.abc import Callable

_CUT = "the output ends without a result"
_STDERR = "Error during droid execution: "
_STDERR_FATAL = ("Invalid model", "Invalid --", "Error: ")
#: What the CLI itself says, in places where the agent's words may stand instead.
_OWN = re.compile(r"(?:Error: )?(?:Authentication failed|Exec (?:ended|failed)|insufficient perm|[45]\d\d )")
_REFUSED = re.compile(r"insufficient permission|--skip-permissions-unsafe")
_LIMITS = (ErrorClass.RATE_LIMITED, ErrorClass.QUOTA, ErrorClass.OVERLOADED)


class DroidAdapter(JsonAdapter):
    name = "droid"
    capabilities = Capabilities(
        supports_roles=True, supports_tool_events=True, supports_usage_events=True, supports_prompt_hiding=True
    )

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._acp = AcpReader()
        self._said = Said()
        self._last: tuple[Any, ...] = ()
        self._session: str | None = None
        self._model: str | None = None
        self._tools = Recent[str, str]()
        self._finished = RecentKeys[str]()
        self._problem: tuple[str, ErrorClass] | None = None
        self._ended = False
        self._handlers: dict[str, Callable[[dict[str, Any]], list[TranscriptEvent]]] = {
            "message": self._message,
            "reasoning": self._reasoning,
            "tool_call": self._tool_call,
            "tool_result": self._tool_result,
            "system": self._system,
            "completion": self._completion,
            "error": self._error,
            "result": self._result,
        }

    # -- lines

    def recognises(self, value: dict[str, Any]) -> bool:
        if is_rpc(value):
            return True
        kind = value.get("type")
        return isinstance(kind, str) and kind in self._handlers and "session_id" in value

    def on_text(self, line: str) -> list[TranscriptEvent]:
        # A terminal shows both streams as one.
        return self.feed_stderr(line) if self.structured else [Text(Tag.AI, line)]

    def feed_stderr(self, line: str) -> list[TranscriptEvent]:
        events: list[TranscriptEvent] = [Text(Tag.SYS, line)]
        bare = strip_escapes(line)
        if bare.startswith(_STDERR):
            events += self._fatal(bare.removeprefix(_STDERR))
        elif bare.startswith(_STDERR_FATAL):
            events += self._fatal(bare)
        return events

    def usual(self) -> Usual | None:
        if self._acp.used:
            return self._acp.usual
        return None if self._session is None else (lines.decode_line, self._usual)

    def _usual(self, line: lines.Line, events: list[TranscriptEvent]) -> bool:
        if not line.id:
            return False
        # Not by isinstance, which is slow to say no.
        if type(line) is lines.Message:
            if not line.text:
                return False
            events += self._spoken(line.role, line.id, line.text, line.session_id)
        elif type(line) is lines.Reasoning:
            if line.text:
                events += self._thought(line.id, line.text)
        elif type(line) is lines.ToolUse:
            if not line.name:
                return False
            events += self._start(line.id, line.name, line.parameters)
        elif type(line) is lines.ToolDone:
            if line.id not in self._tools or not line.value:
                return False
            self._end_call(line.id, line.value, ToolStatus.FAIL if line.failed else ToolStatus.OK, None, events)
        return True

    def on_object(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self.structured = True
        kind = value.get("type")
        handler = self._handlers.get(kind) if isinstance(kind, str) else None
        if handler is None:
            return self._acp.feed(value) if is_rpc(value) else [meta.unknown(value)]
        return handler(value) if self._session is not None else [*self._begin(value), *handler(value)]

    def flush(self) -> list[TranscriptEvent]:
        events = super().flush()
        if self._acp.used:
            return events + self._acp.flush()
        if self.structured and not self._ended and self._problem is None:
            events.append(meta.error(_CUT))
        return events

    # -- stream-json

    def _begin(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        session = get_str(value, "session_id")
        if session is None:
            return []
        self._session = session
        self._model = get_str(value, "model")
        return [meta.session(session, self._model)]

    def _system(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        return [] if value.get("subtype") == "init" else [meta.unknown(value)]

    def _message(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        text = get_str(value, "text", "content")
        if text is None:
            return []
        return self._spoken(value.get("role"), get_str(value, "id"), text, value.get("session_id", self._session))

    def _spoken(self, role: Any, message: str | None, text: str, session: Any) -> list[TranscriptEvent]:
        if self._again("message", message, text):
            return []
        if role == "assistant" and session == self._session:  # else a subagent's
            self._said.add(text)
            return [Text(Tag.AI, text.removesuffix("\n"))]
        return [Text(Tag.PROMPT if role == "user" else Tag.SYS, text)]

    def _reasoning(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        text = get_str(value, "text")
        return [] if text is None else self._thought(get_str(value, "id"), text)

    def _thought(self, message: str | None, text: str) -> list[TranscriptEvent]:
        return [] if self._again("reasoning", message, text) else [Text(Tag.THINK, text.removesuffix("\n"))]

    def _again(self, kind: str, message: str | None, text: str) -> bool:
        """The same as the line before it: only a copy has the same id too."""
        this = (kind, message, text)
        if message is not None and this == self._last:
            return True
        self._last = this
        return False

    def _tool_call(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        call = get_str(value, "id", "toolCallId")
        if call is None:
            return [meta.unknown(value)]
        parameters = value.get("parameters")
        name = get_str(value, "toolName", "toolId") or "tool"
        return self._start(call, name, parameters if isinstance(parameters, dict) else None)

    def _start(self, call: str, name: str, parameters: dict[str, Any] | None) -> list[TranscriptEvent]:
        if call in self._tools or call in self._finished:
            return []
        self._tools[call] = name
        return [ToolStart(ToolCall(call, name, parameters))]

    def _tool_result(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        call = get_str(value, "id", "toolCallId")
        if call is None:
            return [meta.unknown(value)]
        if call in self._finished:
            return []
        events: list[TranscriptEvent] = []
        if call not in self._tools:
            events = self._start(call, get_str(value, "toolName", "toolId") or "tool", None)
        error = value.get("error")
        output = _as_text(value.get("value")) or get_str(error, "message") or _as_text(error)
        match value.get("isError", True if error is not None else None):
            case True:
                status = ToolStatus.FAIL
            case False:
                status = ToolStatus.OK
            case _:
                status = ToolStatus.UNKNOWN
        return self._end_call(call, output, status, get_count(value, "durationMs"), events)

    def _end_call(
        self, call: str, output: str, status: ToolStatus, duration_ms: int | None, events: list[TranscriptEvent]
    ) -> list[TranscriptEvent]:
        self._finished.add(call)
        name = self._tools.pop(call)
        if output:
            events.append(ToolOutput(ToolRef(call, name), output))
        events.append(ToolEnd(ToolResult(call, status, duration_ms, name)))
        return events

    # -- the end

    def _completion(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        return self._finish(value, get_str(value, "finalText"), failed=value.get("isError") is True)

    def _result(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        """The one line of the json format."""
        failed = value.get("is_error") is True or value.get("subtype", "success") != "success"
        return self._finish(value, get_str(value, "result"), failed=failed)

    def _finish(self, value: dict[str, Any], text: str | None, *, failed: bool) -> list[TranscriptEvent]:
        events: list[TranscriptEvent] = []
        # 0.225 takes an earlier message for the final one if that is very long.
        if text and not self._said.repeats(text) and not self._said.knows(text):
            self._said.add(text)
            events.append(Text(Tag.SYS if failed else Tag.AI, text))
        usage = _usage(get_dict(value, "usage"), self._model)
        if usage is not None:
            events.append(UsageEvent(usage))
        return events + (self._failed(text) if failed else self._good())

    def _good(self) -> list[TranscriptEvent]:
        self._ended = True
        return [meta.result(ok=True)]

    def _failed(self, text: str | None) -> list[TranscriptEvent]:
        self._ended = True
        reason, error_class = self._problem or _explain(text or "Exec failed")
        return [*_limit(reason, error_class), meta.result(ok=False, reason=reason, error_class=error_class)]

    def _error(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        message = get_str(value, "message") or get_str(get_dict(value, "error"), "message") or "Exec failed"
        match value.get("source"):
            case "cli":
                # The last line of a failed run. The cause came before it; without one, this may be the agent's words.
                return self._failed("Exec failed" if self._said.repeats(message) else message)
            case _:
                error_class = ErrorClass.PERMISSION_DENIED if _REFUSED.search(message) else classify(message)
                self._problem = (message, error_class)
                return [meta.error(message, error_class)]

    def _fatal(self, message: str) -> list[TranscriptEvent]:
        reason, error_class = _explain(message)
        self._problem = self._problem or (reason, error_class)
        return [meta.error(reason, error_class)]


def _explain(message: str) -> tuple[str, ErrorClass]:
    """The class only if these are certainly the CLI's words."""
    if _OWN.match(message) is None:
        return message, ErrorClass.FAILED
    return message, ErrorClass.PERMISSION_DENIED if _REFUSED.search(message) else classify(message)


def _limit(message: str, error_class: ErrorClass) -> list[TranscriptEvent]:
    seconds = retry_after(message) if error_class in _LIMITS else None
    return [] if seconds is None else [meta.rate_limit(message=message, retry_after=seconds)]


def _usage(usage: dict[str, Any], model: str | None) -> Usage | None:
    """The run's tokens; droid counts cached ones apart. Its credits are no dollars."""
    prompt, output = get_count(usage, "input_tokens"), get_count(usage, "output_tokens")
    read, written = get_count(usage, "cache_read_input_tokens"), get_count(usage, "cache_creation_input_tokens")
    if not any((prompt, output, read, written)):
        return None
    return Usage(
        prompt_tokens=None if prompt is None else prompt + (read or 0) + (written or 0),
        completion_tokens=output,
        model=model,
        cached_tokens=read,
        cache_write_tokens=written,
    )


def _as_text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return msgspec.json.encode(value).decode()


ADAPTER = DroidAdapter
