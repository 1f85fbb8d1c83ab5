"""Factory Droid: `exec -o stream-json` (and debug), json, text, and ACP.

Only its `init` looks like Claude Code's: messages, thoughts and calls come whole, and thoughts come twice. The reason
for a failed API call appears only in stream-json; in json and text it is "Exec failed", or even the agent's last words.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from ralph.transcripts import meta
from ralph.transcripts.acp import AcpReader, is_rpc
from ralph.transcripts.base import Capabilities
from ralph.transcripts.classify import classify, retry_after
from ralph.transcripts.events import Tag, Text, ToolStatus, TranscriptEvent, Usage, UsageEvent
from ralph.transcripts.json_lines import JsonAdapter, get_count, get_dict, get_str, get_text, is_not_text, strip_escapes
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.repeats import Said
from ralph.transcripts.stream_json.tools import ToolCalls

if TYPE_CHECKING:
    from collections.abc import Callable

Events: TypeAlias = list[TranscriptEvent]

_STDERR = "Error during droid execution: "
_STDERR_FATAL = ("Invalid model", "Invalid --", "Error: ")
#: Messages that are certainly the CLI's, in places where the agent's words may appear instead.
_CLI_MESSAGE = re.compile(r"(?:Error: )?(?:Authentication failed|Exec (?:ended|failed)|insufficient perm|[45]\d\d )")
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
        self._tools = ToolCalls()
        self._last: tuple[str, str | None, str] | None = None
        self._session: str | None = None
        self._model: str | None = None
        self._problem: tuple[str, ErrorClass] | None = None
        self._ended = False
        self._handlers: dict[str, Callable[[dict[str, Any]], Events]] = {
            "system": self._system,
            "message": self._message,
            "reasoning": self._reasoning,
            "tool_call": self._tool_call,
            "tool_result": self._tool_result,
            "error": self._error,
            "completion": self._completion,
            "result": self._result,
        }

    # -- lines

    def recognises(self, value: dict[str, Any]) -> bool:
        return is_rpc(value) or (get_str(value, "type") in self._handlers and "session_id" in value)

    def on_text(self, line: str) -> Events:
        # A terminal mixes both streams.
        return self.feed_stderr(line) if self.structured else [Text(Tag.AI, line)]

    def feed_stderr(self, line: str) -> Events:
        events: Events = [Text(Tag.SYS, line)]
        bare = strip_escapes(line)
        if bare.startswith((_STDERR, *_STDERR_FATAL)):
            error = _explain(bare.removeprefix(_STDERR))
            self._problem = self._problem or error
            events.append(meta.error(*error))
        return events

    def on_object(self, value: dict[str, Any]) -> Events:
        self.structured = True
        handler = self._handlers.get(get_str(value, "type") or "")
        if handler is None:
            return self._acp.feed(value) if is_rpc(value) else [meta.unknown(value)]
        if self._session is None and (session := get_str(value, "session_id")):
            self._session, self._model = session, get_str(value, "model")
            return [meta.session(session, self._model), *handler(value)]
        return handler(value)

    def flush(self) -> Events:
        events = super().flush()
        if self._acp.used:
            return events + self._acp.flush()
        if self.structured and not self._ended and self._problem is None:
            events.append(meta.error("the output ends without a result"))
        return events

    # -- messages and tools

    def _system(self, value: dict[str, Any]) -> Events:
        return [] if value.get("subtype") == "init" else [meta.unknown(value)]

    def _message(self, value: dict[str, Any]) -> Events:
        text = get_text(value, "text", "content")
        if text is None:
            return [meta.unknown(value)] if is_not_text(value, "text", "content") else []
        if self._is_copy(value, text):
            return []
        role = value.get("role")
        if role == "assistant" and value.get("session_id", self._session) == self._session:
            self._said.add(text)
            return [Text(Tag.AI, text.removesuffix("\n"))]
        return [Text(Tag.PROMPT if role == "user" else Tag.SYS, text)]  # a message of another session is a subagent's

    def _reasoning(self, value: dict[str, Any]) -> Events:
        text = get_str(value, "text")
        if text is None:
            return [meta.unknown(value)] if is_not_text(value, "text") else []
        return [] if self._is_copy(value, text) else [Text(Tag.THINK, text.removesuffix("\n"))]

    def _is_copy(self, value: dict[str, Any], text: str) -> bool:
        """Whether a line repeats the one before it. Only a copy has the same id."""
        last, self._last = self._last, (value["type"], get_str(value, "id"), text)
        return self._last == last and self._last[1] is not None

    def _tool_call(self, value: dict[str, Any]) -> Events:
        call = get_str(value, "id", "toolCallId")
        if call is None:
            return [meta.unknown(value)]
        return self._tools.start(call, get_str(value, "toolName", "toolId"), value.get("parameters"))

    def _tool_result(self, value: dict[str, Any]) -> Events:
        call = get_str(value, "id", "toolCallId")
        if call is None:
            return [meta.unknown(value)]
        error = value.get("error")
        output = _as_text(value.get("value")) or get_str(error, "message") or _as_text(error)
        match value.get("isError", True if error is not None else None):
            case True:
                status = ToolStatus.FAIL
            case False:
                status = ToolStatus.OK
            case _:
                status = ToolStatus.UNKNOWN
        name = get_str(value, "toolName", "toolId")
        return self._tools.end(call, output, status, get_count(value, "durationMs"), name=name)

    # -- errors and the end

    def _error(self, value: dict[str, Any]) -> Events:
        message = get_str(value, "message") or get_str(get_dict(value, "error"), "message") or "Exec failed"
        if value.get("source") == "cli":
            # The last line of a failed run. The cause came before it; without one, this may be the agent's words.
            return self._failure("Exec failed" if self._said.repeats(message) else message)
        self._problem = (message, _classify(message))
        return [meta.error(*self._problem)]

    def _completion(self, value: dict[str, Any]) -> Events:
        return self._finish(value, get_str(value, "finalText"), failed=value.get("isError") is True)

    def _result(self, value: dict[str, Any]) -> Events:
        """The one line of the json format."""
        failed = value.get("is_error") is True or value.get("subtype", "success") != "success"
        return self._finish(value, get_str(value, "result"), failed=failed)

    def _finish(self, value: dict[str, Any], text: str | None, *, failed: bool) -> Events:
        events: Events = []
        # 0.225 reports an earlier message as the final one if the final one is very long.
        if text and not self._said.repeats(text) and not self._said.knows(text):
            self._said.add(text)
            events.append(Text(Tag.SYS if failed else Tag.AI, text))
        usage = _usage(get_dict(value, "usage"), self._model)
        if usage is not None:
            events.append(UsageEvent(usage))
        if failed:
            return events + self._failure(text or "Exec failed")
        self._ended = True
        return [*events, meta.result(ok=True)]

    def _failure(self, text: str) -> Events:
        self._ended = True
        reason, error_class = self._problem or _explain(text)
        return [*_limit(reason, error_class), meta.result(ok=False, reason=reason, error_class=error_class)]


def _explain(message: str) -> tuple[str, ErrorClass]:
    """A message with its class; unless it is certainly the CLI's, that is FAILED."""
    return message, _classify(message) if _CLI_MESSAGE.match(message) else ErrorClass.FAILED


def _classify(message: str) -> ErrorClass:
    return ErrorClass.PERMISSION_DENIED if _REFUSED.search(message) else classify(message)


def _limit(message: str, error_class: ErrorClass) -> Events:
    seconds = retry_after(message) if error_class in _LIMITS else None
    return [] if seconds is None else [meta.rate_limit(message=message, retry_after=seconds)]


def _usage(usage: dict[str, Any], model: str | None) -> Usage | None:
    """The run's tokens. Droid's `input_tokens` exclude the cache; its credits are not dollars."""
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
