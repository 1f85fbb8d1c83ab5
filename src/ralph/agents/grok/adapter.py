"""Grok Build: `--output-format` streaming-json, streaming-messages-json (Claude Code's format), json and plain.

Written from its documentation, without recordings. In its own events, a failed command has the status `completed`; only
the exit code tells. Messages follow each other without a separator, except for tool calls and token counts.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ralph.transcripts import meta
from ralph.transcripts.events import Meta, Tag, Text, ToolStatus, UsageEvent, decode_json
from ralph.transcripts.json_lines import get_count, get_dict, get_int, get_str, strip_escapes
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.stream_json.adapter import ClaudeLikeAdapter, Events, result_meta
from ralph.transcripts.stream_json.errors import Failure, error_class, read_error

_ERROR = "Error: "
_OWN_TYPES = ("text", "thought")
_STATUS = {"completed": ToolStatus.OK, "failed": ToolStatus.FAIL, "cancelled": ToolStatus.FAIL}
#: The results of calls that were not executed. The output of a command comes with an exit code.
_NOT_RUN = re.compile(r"Tool `?[^`\n]+`? was not executed: Denied|User cancelled the execution for tool")
#: The names of a command's exit code and of the output that the model sees.
_CODE = ("exit_code", "exitCode")
_OUTPUT = ("output_for_prompt", "output", "stdout", "text", "OkayOutput")


class GrokAdapter(ClaudeLikeAdapter):
    name = "grok"

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._refusal: str | None = None
        self._stderr = ""  # the first error on stderr
        self._calls = 0
        self.handlers |= {
            "text": lambda value: self.stream.text(get_str(value, "data") or ""),
            "thought": lambda value: self.stream.thought(get_str(value, "data") or ""),
            "tool_call": self._tool_call,
            "tool_call_update": self._tool_update,
            "usage": self._count,
            "end": self._end,
            "error": self._failed,
            "available_commands": lambda _: [],
        }

    # -- lines

    def recognises(self, value: dict[str, Any]) -> bool:
        kind = value.get("type")
        if kind in _OWN_TYPES:
            return "data" in value
        if kind == "error":
            return "message" in value or "error" in value
        return _is_answer(value) or super().recognises(value)

    def on_object(self, value: dict[str, Any]) -> Events:
        if "type" not in value and _is_answer(value):
            self.structured = True
            return self._answer(value)
        return super().on_object(value)

    def on_text(self, line: str) -> Events:
        if self.structured:
            return self.feed_stderr(line)  # a terminal mixes both streams
        return [Text(Tag.AI, line)]

    def feed_stderr(self, line: str) -> Events:
        bare = strip_escapes(line)
        if bare.startswith(_ERROR) and not self._stderr:
            self._stderr = bare.removeprefix(_ERROR)
        return [Text(Tag.SYS, line)]

    def flush(self) -> Events:
        if not self._stderr or self.ended:
            return super().flush()
        self.ended = True
        error = self.last_error or Failure(self._stderr, error_class(self._stderr))
        return [*super().flush(), *self.limit_events(*error), meta.error(*error)]

    # -- streaming-json

    def _tool_call(self, value: dict[str, Any]) -> Events:
        call, name = get_str(value, "toolCallId", "id"), get_str(value, "toolName", "title", "kind")
        return [*self.stream.close(), *self.tools.start(call, name, value.get("rawInput"))]

    def _tool_update(self, value: dict[str, Any]) -> Events:
        status = _STATUS.get(str(value.get("status")))
        if status is None:
            return []
        code, text = _command(value.get("rawOutput"))
        text = text or _text(value.get("content"))
        if code or (code is None and self._is_refusal(text)):
            status = ToolStatus.FAIL
        return [*self.stream.close(), *self.tools.end(get_str(value, "toolCallId", "id"), text, status)]

    def _count(self, value: dict[str, Any]) -> Events:
        """The tokens of one model call. They count only if `end` does not report their sum."""
        self._calls += 1
        usage = get_dict(value, "usage") or value
        call = {"id": get_str(value, "messageId") or f"call-{self._calls}", "usage": usage}
        return self.stream.close() + self.usage.message(call, self.model)

    def _end(self, value: dict[str, Any]) -> Events:
        self.ended = True
        events = self.stream.close()
        session = get_str(value, "sessionId", "session_id")
        if session is not None and self.session is None:
            self.session = session
            events.append(meta.session(session, self.model))
        usage = self.usage.result(value, self.model)
        if usage is not None:
            if usage.reasoning_tokens is None:
                reasoning = get_count(get_dict(value, "usage"), "reasoning_tokens")
                usage = msgspec.structs.replace(usage, reasoning_tokens=reasoning)
            events.append(UsageEvent(usage))
        reason = get_str(value, "stopReason", "stop_reason")
        turns = get_count(value, "num_turns")
        good = reason is None or reason.replace("_", "").lower() in ("endturn", "stop", "stopsequence")
        if self._refusal is not None:
            denied = ErrorClass.PERMISSION_DENIED
            return [*events, meta.result(ok=False, reason=self._refusal, error_class=denied, num_turns=turns)]
        kind = None if good else ErrorClass.FAILED
        return [*events, meta.result(ok=good, reason=reason, error_class=kind, num_turns=turns)]

    def _failed(self, value: dict[str, Any]) -> Events:
        """The last line of a failed run, in every format."""
        message = get_str(value, "message") or read_error(value).message
        self.ended = True
        self.last_error = error = Failure(message, error_class(message))
        return [*self.stream.close(), *self.limit_events(*error), meta.error(*error)]

    # -- json

    def _answer(self, value: dict[str, Any]) -> Events:
        events: Events = []
        if thought := get_str(value, "thought"):
            events.append(Text(Tag.THINK, thought))
        if text := get_str(value, "text"):
            events.append(Text(Tag.AI, text.removesuffix("\n")))
        return events + self._end(value)

    # -- streaming-messages-json

    def tool_status(self, text: str, *, failed: bool) -> tuple[ToolStatus, str]:
        """A result is JSON in a string, and `is_error` is false even for a command that failed."""
        code = None
        if text[:1] in ("{", "["):
            try:
                inner = decode_json(text)
            except (ValueError, RecursionError):
                inner = None
            code, output = _command(inner)
            text = output or _text(inner) or text
        refused = code is None and self._is_refusal(text)
        return super().tool_status(text, failed=failed or bool(code) or refused)

    def success(self, value: dict[str, Any]) -> Meta:
        if self._refusal is None:
            return super().success(value)
        return result_meta(value, self._refusal, ErrorClass.PERMISSION_DENIED)

    def failure(self, value: dict[str, Any], text: str) -> Failure:
        if self._refusal is not None:
            return Failure(self._refusal, ErrorClass.PERMISSION_DENIED)
        return super().failure(value, text)

    def _is_refusal(self, text: str) -> bool:
        if _NOT_RUN.match(text) is None:
            return False
        self._refusal = text.partition("\n")[0][:300]
        return True


def _is_answer(value: dict[str, Any]) -> bool:
    return isinstance(value.get("text"), str) and "stopReason" in value


def _text(content: Any) -> str:
    """The text of a list of content blocks."""
    blocks = content if isinstance(content, list) else []
    texts = [get_str(get_dict(block, "content") or block, "text") for block in blocks]
    return "\n".join(text for text in texts if text)


def _command(raw: Any) -> tuple[int | None, str]:
    """The exit code and the output in a call's raw result, at its top level or one level below."""
    if not isinstance(raw, dict):
        return None, raw if isinstance(raw, str) else ""
    levels = [raw, *(inner for inner in raw.values() if isinstance(inner, dict))]
    code = next((c for level in levels if (c := get_int(level, *_CODE)) is not None), None)
    text = next((t for level in levels if (t := get_str(level, *_OUTPUT))), "")
    return code, text or _bytes(raw.get("output"))


def _bytes(value: Any) -> str:
    """Output as an array of byte values."""
    if isinstance(value, list) and all(type(b) is int and 0 <= b < 256 for b in value):
        return bytes(value).decode(errors="replace")
    return ""


ADAPTER = GrokAdapter
