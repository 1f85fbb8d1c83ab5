"""Mistral Vibe: `--output` streaming (one journal entry per line), json (an array of them at the end) or text.

Written from its documentation, without recordings. No line ends a run: the exit code and stderr do. A resumed session
first repeats its earlier messages, so words count only after the last prompt.
"""

from __future__ import annotations

from typing import Any

from ralph.transcripts import meta
from ralph.transcripts.base import Capabilities
from ralph.transcripts.classify import classify
from ralph.transcripts.errors import fatal_error
from ralph.transcripts.events import Tag, Text, ToolStatus, TranscriptEvent
from ralph.transcripts.json_lines import JsonAdapter, get_count, get_dict, get_list, get_str, strip_escapes
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.recent import RecentKeys
from ralph.transcripts.tool_calls import ToolCalls, output_text

_ERROR = "Error: "
_STOPPED = "Stopped: "
_TYPES = ("message", "reasoning", "effect")
_ENTRY = ("sessionId", "turnId", "createdAt")
_REFUSED = frozenset({"denied", "rejected", "declined", "skipped"})
_BAD = frozenset({"failed", "error", "cancelled", "interrupted"})


class VibeAdapter(JsonAdapter):
    name = "vibe"
    capabilities = Capabilities(supports_roles=True, supports_tool_events=True, supports_prompt_hiding=True)

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._session: str | None = None
        self._seen = RecentKeys[str]()
        self._tools = ToolCalls()
        self._unnamed = 0  # calls without an id
        self._asked = False
        self._answered = False
        self._problem: str | None = None

    def recognises(self, value: dict[str, Any]) -> bool:
        return value.get("type") in _TYPES and any(key in value for key in _ENTRY)

    def on_object(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self.structured = True
        events: list[TranscriptEvent] = []
        session = get_str(value, "sessionId")
        if session is not None and self._session is None:
            self._session = session
            events.append(meta.session(session))
        identity = get_str(value, "id")
        if identity is not None:
            if identity in self._seen:
                return events
            self._seen.add(identity)
        match value.get("type"):
            case "message":
                return events + self._message(value)
            case "reasoning":
                text = _text(value.get("content"))
                return [*events, Text(Tag.THINK, text.removesuffix("\n"))] if text else events
            case "effect":
                return events + self._effect(value)
        return [*events, meta.unknown(value)]

    def on_text(self, line: str) -> list[TranscriptEvent]:
        # A terminal merges stderr with stdout.
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
            return events + fatal_error(self._problem, error_class)
        for name in self._tools.refused:
            return [*events, meta.error(f"the tool {name} was refused", ErrorClass.PERMISSION_DENIED)]
        if self._asked and not self._answered:
            events.append(meta.error("the output ends without an answer"))
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
                self._tools.refused.clear()
                return [Text(Tag.PROMPT, text)]
        return [Text(Tag.SYS, text)] if text else []

    def _effect(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        """A finished call with its result."""
        detail, state = get_dict(value, "detail"), get_dict(value, "state")
        call = get_str(value, "id")
        if call is None:
            self._unnamed += 1
            call = f"effect-{self._unnamed}"
        name = get_str(detail, "toolName", "kind") or "tool"
        outcome = get_str(state, "status")
        refusal = outcome if outcome in _REFUSED else None
        start = self._tools.start(call, name, get_dict(detail, "input") or None)
        took = get_count(state, "durationMs")
        return start + self._tools.end(call, _output(state), _status(state), duration_ms=took, refusal=refusal or "")


def _status(state: dict[str, Any]) -> ToolStatus:
    status, success = get_str(state, "status"), get_dict(state, "display").get("success")
    if success is False or status in _BAD or status in _REFUSED:
        return ToolStatus.FAIL
    return ToolStatus.OK if success is True or status == "completed" else ToolStatus.UNKNOWN


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "".join(t for t in (p if isinstance(p, str) else get_str(p, "text") for p in content) if t)


def _output(state: dict[str, Any]) -> str:
    output = state.get("output")
    streams = "".join(text for key in ("stdout", "stderr") if (text := get_str(output, key)))
    text = get_str(state, "outputText") or streams or _text(get_list(output, "content"))
    return text or (output_text(output) if output else get_str(state, "error") or "")


ADAPTER = VibeAdapter
