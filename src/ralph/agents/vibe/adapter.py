"""Mistral Vibe: `--output` streaming (a journal entry a line), json (all of them in an array, at the end), text.

Written from its description, not from recordings of ours. No line ends a run: that is for the exit code and stderr. A
resumed session begins with what was said before, so words count only after the last prompt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ralph.transcripts import meta
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
)
from ralph.transcripts.json_lines import JsonAdapter, get_count, get_dict, get_list, get_str, strip_escapes
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.recent import Recent, RecentKeys

if TYPE_CHECKING:
    from collections.abc import Callable

_NO_ANSWER = "the output ends without an answer"
_ERROR = "Error: "
_STOPPED = "Stopped: "
_ENTRY = ("sessionId", "turnId", "createdAt")
_REFUSED = frozenset({"denied", "rejected", "declined", "skipped"})
_BAD = frozenset({"failed", "error", "cancelled", "interrupted"})
_LIMITS = (ErrorClass.RATE_LIMITED, ErrorClass.QUOTA, ErrorClass.OVERLOADED)


class VibeAdapter(JsonAdapter):
    name = "vibe"
    capabilities = Capabilities(supports_roles=True, supports_tool_events=True, supports_prompt_hiding=True)

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._session = False
        self._known = RecentKeys[str]()
        self._refused = Recent[str, str]()
        self._asked = False
        self._answered = False
        self._problem: str | None = None
        self._types: dict[str, Callable[[dict[str, Any]], list[TranscriptEvent]]] = {
            "message": self._message,
            "reasoning": self._reasoning,
            "effect": self._effect,
        }

    # -- lines

    def recognises(self, value: dict[str, Any]) -> bool:
        kind = value.get("type")
        return isinstance(kind, str) and kind in self._types and any(key in value for key in _ENTRY)

    def on_object(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self.structured = True
        events: list[TranscriptEvent] = []
        session = None if self._session else get_str(value, "sessionId")
        if session is not None:
            self._session = True
            events.append(meta.session(session))
        identity = get_str(value, "id")
        if identity is not None:
            if identity in self._known:
                return events
            self._known.add(identity)
        kind = value.get("type")
        handler = self._types.get(kind) if isinstance(kind, str) else None
        return [*events, meta.unknown(value)] if handler is None else events + handler(value)

    def on_text(self, line: str) -> list[TranscriptEvent]:
        # A terminal shows both streams as one.
        return self.feed_stderr(line) if self.structured else [Text(Tag.AI, line)]

    def feed_stderr(self, line: str) -> list[TranscriptEvent]:
        bare = strip_escapes(line)
        if bare.startswith((_ERROR, _STOPPED)) and self._problem is None:
            self._problem = bare.removeprefix(_ERROR)
        return [Text(Tag.SYS, line)]

    def flush(self) -> list[TranscriptEvent]:
        events = super().flush()
        if self._problem is not None:
            error_class = ErrorClass.FAILED if self._problem.startswith(_STOPPED) else classify(self._problem)
            seconds = retry_after(self._problem) if error_class in _LIMITS else None
            if seconds is not None:
                events.append(meta.rate_limit(message=self._problem, retry_after=seconds))
            return [*events, meta.error(self._problem, error_class)]
        for name in self._refused:
            return [*events, meta.error(f"the tool {name} was refused", ErrorClass.PERMISSION_DENIED)]
        if self._asked and not self._answered:
            events.append(meta.error(_NO_ANSWER))
        return events

    # -- entries

    def _message(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        text = _text(value.get("content"))
        match value.get("role"):
            case "assistant":
                self._answered = self._answered or bool(text.strip())
                if get_str(value, "generationStatus") in _BAD:
                    self._answered = False
                return [Text(Tag.AI, text.removesuffix("\n"))] if text else []
            case "user":
                self._asked, self._answered = True, False
                self._refused.clear()
                return [Text(Tag.PROMPT, text)]
        return [Text(Tag.SYS, text)] if text else []

    def _reasoning(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        text = _text(value.get("content"))
        return [Text(Tag.THINK, text.removesuffix("\n"))] if text else []

    def _effect(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        """A call with its result, once it is over."""
        detail, state = get_dict(value, "detail"), get_dict(value, "state")
        call = get_str(value, "id") or f"effect-{self._known.added + 1}"
        name = get_str(detail, "toolName", "kind") or "tool"
        given = detail.get("input")
        output = _output(state)
        status = self._status(name, state)
        events: list[TranscriptEvent] = [ToolStart(ToolCall(call, name, given if isinstance(given, dict) else None))]
        if output:
            events.append(ToolOutput(ToolRef(call, name), output))
        return [*events, ToolEnd(ToolResult(call, status, get_count(state, "durationMs"), name))]

    def _status(self, name: str, state: dict[str, Any]) -> ToolStatus:
        status = get_str(state, "status")
        if status in _REFUSED:
            self._refused[name] = status or ""
            return ToolStatus.FAIL
        success = get_dict(state, "display").get("success")
        if success is False or status in _BAD:
            return ToolStatus.FAIL
        if success is True or status == "completed":
            self._refused.pop(name, None)
            return ToolStatus.OK
        return ToolStatus.UNKNOWN


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "".join(t for t in (p if isinstance(p, str) else get_str(p, "text") for p in content) if t)


def _output(state: dict[str, Any]) -> str:
    text = get_str(state, "outputText")
    if text is not None:
        return text
    output = state.get("output")
    if isinstance(output, str):
        return output
    both = "".join(t for t in (get_str(output, "stdout"), get_str(output, "stderr")) if t)
    if both or not output:
        return both or get_str(state, "error") or ""
    return _text(get_list(output, "content")) or msgspec.json.encode(output).decode()


ADAPTER = VibeAdapter
