"""Kimi: kimi-cli (Python, 1.x) and Kimi Code (npm, 2.x), each with stream-json, text and ACP.

Their JSON lines are messages in OpenAI's style, without a type. Kimi Code ends a successful run with a hint how to
resume it; kimi-cli just stops, and prints its errors as plain text among the lines.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Any

from ralph.agents.kimi import errors
from ralph.agents.kimi.text import ReprReader
from ralph.agents.kimi.tools import KimiTools, content_text
from ralph.transcripts import deltas, meta
from ralph.transcripts.acp import AcpReader, is_rpc
from ralph.transcripts.base import Capabilities
from ralph.transcripts.classify import classify
from ralph.transcripts.errors import CUT
from ralph.transcripts.events import Tag, Text, TranscriptEvent
from ralph.transcripts.json_lines import JsonAdapter, get_count, get_dict, get_int, get_list, get_str, strip_escapes
from ralph.transcripts.meta import ErrorClass

#: The output of a hook comes as a message of the assistant.
_HOOK = re.compile(r"[A-Z][A-Za-z]+ hook(?: blocked)?\n\n")
_BULLET = "• "


class KimiAdapter(JsonAdapter):
    name = "kimi"
    capabilities = Capabilities(supports_roles=True, supports_tool_events=True, supports_prompt_hiding=True)

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._acp = AcpReader()
        self._reprs: ReprReader | None = None
        self._tools = KimiTools()
        self._undecided = True  # it is not clear yet who wrote the lines of text
        self._held: list[str] = []
        self._held_size = 0
        self._bullets = False
        self._kimi_code = False
        self._answered = False  # the last message is the agent's and calls no tool
        self._ended = False
        self._tail: deque[str] = deque(maxlen=errors.ERROR_LINES)  # text after the last JSON line
        self._problem: str | None = None
        self._retrying: TranscriptEvent | None = None
        self._session: str | None = None
        self._hint: str | None = None

    def recognises(self, value: dict[str, Any]) -> bool:
        match value:
            case {"role": "meta"} | {"role": "assistant" | "tool" | "user" | "system", "content": _}:
                return True
            case {"role": "assistant", "tool_calls": _}:
                return True
        return is_rpc(value)

    def on_object(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        if not self.structured:
            self.structured = True
            return [*self._release(Tag.SYS), *self.on_object(value)]
        self._tail.clear()
        match value.get("role"):
            case "assistant":
                return self._assistant(value)
            case "tool":
                return self._tool(value)
            case "meta":
                return self._meta(value)
            case "user":
                return [Text(Tag.PROMPT, content_text(value.get("content")))]
            case "system":
                return [Text(Tag.SYS, content_text(value.get("content")))]
        if is_rpc(value):
            return self._acp.feed(value)
        notice = _notice(value)
        return [Text(Tag.SYS, notice) if notice else meta.unknown(value)]

    # -- stream-json

    def _assistant(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        thought, content = get_str(value, "reasoning_content"), value.get("content")
        events: list[TranscriptEvent] = [Text(Tag.THINK, thought)] if thought else []
        for part in content if isinstance(content, list) else [content]:
            events += _part(part)
        calls = get_list(value, "tool_calls")
        for call in calls:
            identity = get_str(call, "id")
            if identity is None:
                events.append(meta.unknown(call))
            else:
                events += self._tools.begin(identity, get_dict(call, "function"))
        self._answered = not calls
        self._retrying = None
        return events

    def _tool(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        call = get_str(value, "tool_call_id", "id")
        if call is None:
            return [meta.unknown(value)]
        self._answered = False
        return self._tools.finish(call, content_text(value.get("content")), kimi_code=self._kimi_code)

    def _meta(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self._kimi_code = True
        match value.get("type"):
            case "system.version":
                return []
            case "turn.step.retrying":
                return [self._retry(value)]
            case "session.resume_hint":
                self._ended = True
                return [*self._begin(get_str(value, "session_id")), self._tools.result()]
        return [meta.unknown(value)]

    def _retry(self, value: dict[str, Any]) -> TranscriptEvent:
        message = get_str(value, "error_message", "error_name") or "the model call failed"
        error_class = classify(message, get_int(value, "status_code"))
        self._retrying = meta.error(f"{message} (it was still retrying)", error_class)
        attempt, delay = get_count(value, "failed_attempt"), get_count(value, "delay_ms")
        return meta.retry(message, error_class, attempt=attempt, delay_ms=delay)

    def _begin(self, session: str | None) -> list[TranscriptEvent]:
        if session is None or self._session is not None:
            return []
        self._session = session
        return [meta.session(session)]

    # -- text

    def feed(self, line: str) -> list[TranscriptEvent]:
        if self._reprs is None:
            return super().feed(line)
        bare = strip_escapes(line)
        self._note(bare)
        return self._reprs.feed(bare)

    def on_text(self, line: str) -> list[TranscriptEvent]:
        bare = strip_escapes(line)
        if self.structured:
            self._tail.append(bare)
            return self.feed_stderr(line)
        if errors.is_stderr(bare):
            self._hint = errors.resume_id(bare) or self._hint
            return self._hold(line) if self._undecided else [Text(Tag.SYS, line)]
        if not self._undecided:
            return [Text(Tag.AI, self._unindented(line))]
        if ReprReader.recognises(bare):
            self.structured = True
            self._reprs = ReprReader()
            return [*self._release(Tag.PROMPT), *self._reprs.feed(bare)]
        if bare.startswith(_BULLET) and not _first(self._held):
            self._bullets = True
            return [*self._release(Tag.SYS), Text(Tag.AI, self._unindented(line))]
        return self._hold(line)

    def feed_stderr(self, line: str) -> list[TranscriptEvent]:
        self._note(strip_escapes(line))
        return [Text(Tag.SYS, line)]

    def _note(self, line: str) -> None:
        """Remembers what only stderr says. Kimi Code copies tool output there, so an error counts only at the end."""
        hint = errors.resume_id(line)
        if hint is not None:
            self._hint, self._problem = hint, None
        else:
            self._problem = errors.code_error(line) or self._problem

    def _unindented(self, line: str) -> str:
        """Kimi Code puts a bullet before each message and indents its other lines."""
        return line[2:] if self._bullets and line.startswith((_BULLET, "  ")) else line

    def _hold(self, line: str) -> list[TranscriptEvent]:
        self._held.append(line)
        self._held_size += len(line) + 1
        return self._release(Tag.AI) if self._held_size > deltas.MAX_HELD else []

    def _release(self, tag: Tag) -> list[TranscriptEvent]:
        self._undecided = False
        held, self._held = self._held, []
        return [Text(Tag.SYS if errors.is_stderr(strip_escapes(line)) else tag, line) for line in held]

    # -- the end

    def flush(self) -> list[TranscriptEvent]:
        events = super().flush()
        if self._acp.used:
            return events + self._acp.flush()
        events += self._flush_held() + self._begin(self._hint)
        if self._reprs is not None:
            return events + self._reprs.flush()
        if self._ended:
            return events
        if self._problem is not None:
            return events + errors.fatal(self._problem)
        return events + self._missing_end() if self.structured else events

    def _flush_held(self) -> list[TranscriptEvent]:
        """Plain text only: the final message, or an error that came before it."""
        held = [strip_escapes(line) for line in self._held]
        first = _first(held)
        if errors.is_own(first):
            return [*self._release(Tag.SYS), *errors.own_error(held)]
        problem = errors.code_error(first)
        self._problem = problem or self._problem
        return self._release(Tag.AI if problem is None else Tag.SYS)

    def _missing_end(self) -> list[TranscriptEvent]:
        """No result came. kimi-cli never prints one; Kimi Code may print its hint on stderr."""
        error = errors.own_error(self._tail)
        if error:
            return error
        if self._tools.refusal is not None:
            return [meta.error(self._tools.refusal, ErrorClass.PERMISSION_DENIED)]
        if self._answered and (self._hint is not None or not self._kimi_code):
            return []
        return [self._retrying or meta.error(CUT)]


def _first(lines: list[str]) -> str:
    """The first line of stdout that is not blank."""
    return next((line for line in map(strip_escapes, lines) if line.strip() and not errors.is_stderr(line)), "")


def _part(part: Any) -> list[TranscriptEvent]:
    match part:
        case str(text) | {"type": "text", "text": str(text)}:
            tag = Tag.SYS if _HOOK.match(text) else Tag.AI
            return [Text(tag, text.removesuffix("\n"))] if text else []
        case {"think": str(thought)}:
            return [Text(Tag.THINK, thought.removesuffix("\n"))] if thought else []
        case None:
            return []
    return [meta.unknown(part)]


def _notice(value: dict[str, Any]) -> str | None:
    """A notification or a plan that kimi-cli shows to the user."""
    if "file_path" in value:
        return get_str(value, "content")
    if "severity" in value or "body" in value:
        return "\n".join(t for t in (get_str(value, "title"), get_str(value, "body")) if t)
    return None


ADAPTER = KimiAdapter
