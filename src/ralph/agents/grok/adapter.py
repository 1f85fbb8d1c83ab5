"""Grok Build: `--output-format` streaming-json, streaming-messages-json (Claude's schema), json, and plain.

Written from its description, not from recordings of ours. In its own events a command that failed has `completed`; only
its exit code tells. Words of different messages are joined without a separator: tools and counts stand between them.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ralph.transcripts import meta
from ralph.transcripts.events import Tag, Text, ToolStatus, UsageEvent, decode_json
from ralph.transcripts.json_lines import get_count, get_dict, get_int, get_list, get_str, strip_escapes
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.stream_json.adapter import ClaudeLikeAdapter, Events
from ralph.transcripts.stream_json.errors import error_class

_ERROR = "Error: "
_OWN_TYPES = ("text", "thought")
_STATUS = {"completed": ToolStatus.OK, "failed": ToolStatus.FAIL, "cancelled": ToolStatus.FAIL}
#: Results of calls that were not run. A command's own output has an exit code beside it.
_NOT_RUN = re.compile(r"Tool `?[^`\n]+`? was not executed: Denied|User cancelled the execution for tool")
#: How it names the exit code of a command, and what the model was shown of its output.
_CODE = ("exit_code", "exitCode")
_SHOWN = ("output_for_prompt", "output", "stdout", "text", "OkayOutput")


class GrokAdapter(ClaudeLikeAdapter):
    name = "grok"

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._refused: str | None = None
        self._stderr: str | None = None
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
            return self.feed_stderr(line)  # a terminal shows both streams as one
        return [Text(Tag.AI, line)]

    def feed_stderr(self, line: str) -> Events:
        bare = strip_escapes(line)
        if bare.startswith(_ERROR) and self._stderr is None:
            self._stderr = bare.removeprefix(_ERROR)
        return [Text(Tag.SYS, line)]

    def flush(self) -> Events:
        if self._stderr is None or self.ended:
            return super().flush()
        self.ended = True
        message, kind = self.trouble or (self._stderr, error_class(self._stderr))
        return [*super().flush(), *self._limit_end(message, kind, None), meta.error(message, kind)]

    # -- streaming-json

    def _tool_call(self, value: dict[str, Any]) -> Events:
        name = get_str(value, "toolName", "title", "kind")
        block = {"id": get_str(value, "toolCallId", "id"), "name": name, "input": value.get("rawInput")}
        return [*self.stream.close(), *self.tools.start(block)]

    def _tool_update(self, value: dict[str, Any]) -> Events:
        status = _STATUS.get(str(value.get("status")))
        if status is None:
            return []
        code, text = _command(value.get("rawOutput"))
        text = text or "\n".join(t for t in map(_content, get_list(value, "content")) if t)
        if code or (code is None and self._is_refusal(text)):
            status = ToolStatus.FAIL
        return [*self.stream.close(), *self.tools.end(get_str(value, "toolCallId", "id"), text, status)]

    def _count(self, value: dict[str, Any]) -> Events:
        """The tokens of one model call; `end` has their sum, so they count only where that is missing."""
        self._calls += 1
        usage = get_dict(value, "usage") or value
        self.usage.message({"id": get_str(value, "messageId") or f"call-{self._calls}", "usage": usage})
        return self.stream.close()

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
        if self._refused is not None:
            denied = ErrorClass.PERMISSION_DENIED
            return [*events, meta.result(ok=False, reason=self._refused, error_class=denied, num_turns=turns)]
        kind = None if good else ErrorClass.FAILED
        return [*events, meta.result(ok=good, reason=reason, error_class=kind, num_turns=turns)]

    def _failed(self, value: dict[str, Any]) -> Events:
        """The last line of a run that failed, of any format."""
        told = value.get("error")
        message = get_str(value, "message") or (told if isinstance(told, str) else get_str(told, "message"))
        message = message or "the agent reported an error"
        kind = error_class(message)
        self.ended = True
        self.trouble = (message, kind)
        return [*self.stream.close(), *self._limit_end(message, kind, None), meta.error(message, kind)]

    # -- json

    def _answer(self, value: dict[str, Any]) -> Events:
        thought, text = get_str(value, "thought"), get_str(value, "text")
        events: Events = []
        if thought:
            events.append(Text(Tag.THINK, thought))
        if text:
            events.append(Text(Tag.AI, text.removesuffix("\n")))
        return events + self._end(value)

    # -- streaming-messages-json

    def tool_status(self, text: str, *, failed: bool) -> tuple[ToolStatus, str]:
        """A result is JSON in a string; `is_error` is false for a command that failed."""
        code = None
        if text[:1] in ("{", "["):
            try:
                inner = decode_json(text)
            except (ValueError, RecursionError):
                inner = None
            code, shown = _command(inner)
            shown = shown or "\n".join(t for t in map(_content, inner if isinstance(inner, list) else []) if t)
            text = shown or text
        refused = code is None and self._is_refusal(text)
        return (ToolStatus.FAIL if failed or code or refused else ToolStatus.OK), text

    def _good_result(self, value: dict[str, Any]) -> Events:
        if self._refused is None:
            return super()._good_result(value)
        return [meta.result(ok=False, reason=self._refused, error_class=ErrorClass.PERMISSION_DENIED)]

    def failure(self, value: dict[str, Any], text: str) -> tuple[str, ErrorClass]:
        if self._refused is not None:
            return self._refused, ErrorClass.PERMISSION_DENIED
        return super().failure(value, text)

    def _is_refusal(self, text: str) -> bool:
        if _NOT_RUN.match(text) is None:
            return False
        self._refused = text.partition("\n")[0][:300]
        return True


def _is_answer(value: dict[str, Any]) -> bool:
    return isinstance(value.get("text"), str) and "stopReason" in value


def _content(block: Any) -> str:
    inner = get_dict(block, "content") or block
    return get_str(inner, "text") or ""


def _command(raw: Any) -> tuple[int | None, str]:
    """The exit code and output that a call's raw result tells, at its top or one level below."""
    if not isinstance(raw, dict):
        return None, raw if isinstance(raw, str) else ""
    levels = [raw, *(inner for inner in raw.values() if isinstance(inner, dict))]
    code = next((c for level in levels if (c := get_int(level, *_CODE)) is not None), None)
    text = next((t for level in levels if (t := get_str(level, *_SHOWN))), "")
    return code, text or _bytes(raw.get("output"))


def _bytes(value: Any) -> str:
    """Output as an array of byte values."""
    if isinstance(value, list) and all(type(b) is int and 0 <= b < 256 for b in value):
        return bytes(value).decode(errors="replace")
    return ""


ADAPTER = GrokAdapter
