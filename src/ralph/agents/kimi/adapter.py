"""Kimi: kimi-cli (Python, 1.x) and Kimi Code (npm, 2.x), each with stream-json, text and ACP.

Their JSON lines are messages in OpenAI's style, without a type. Kimi Code ends a good run with a hint how to resume it;
kimi-cli just ends, and prints its errors as plain text among the lines.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, Any

from ralph.agents.kimi import errors
from ralph.agents.kimi.lines import Assistant, Line, TextPart, ThinkPart, Tool, decode_line
from ralph.agents.kimi.text import ERROR_LINES, ReprReader, begins
from ralph.agents.kimi.tools import KimiTools
from ralph.transcripts import deltas, meta
from ralph.transcripts.acp import AcpReader, is_rpc
from ralph.transcripts.base import Capabilities
from ralph.transcripts.classify import classify
from ralph.transcripts.events import Tag, Text, TranscriptEvent
from ralph.transcripts.json_lines import (
    JsonAdapter,
    Usual,
    get_count,
    get_dict,
    get_int,
    get_list,
    get_str,
    strip_escapes,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_CUT = "the output ends without a result"
_ROLES = frozenset({"assistant", "tool", "meta", "user", "system"})
#: What a hook printed comes as an assistant's message.
_HOOK = re.compile(r"[A-Z][A-Za-z]+ hook(?: blocked)?\n\n")
_BULLET = "• "
_AI, _THINK = Tag.AI, Tag.THINK


class KimiAdapter(JsonAdapter):
    name = "kimi"
    capabilities = Capabilities(supports_roles=True, supports_tool_events=True, supports_prompt_hiding=True)

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._acp = AcpReader()
        self._tools = KimiTools()
        self._reprs: ReprReader | None = None
        self._held: list[str] | None = []  # lines of text, as long as it is not clear whose they are
        self._bullets = False
        self._code = False  # it is Kimi Code
        self._ended = False
        self._answered = False
        self._held_size = 0
        self._tail: deque[str] = deque(maxlen=ERROR_LINES)  # text after the last JSON line
        self._problem: str | None = None
        self._retrying: TranscriptEvent | None = None  # what it was still trying to get over
        self._session: str | None = None
        self._hint: str | None = None
        self._roles: dict[str, Callable[[dict[str, Any]], list[TranscriptEvent]]] = {
            "assistant": self._assistant,
            "tool": self._tool,
            "meta": self._meta,
            "user": lambda value: [Text(Tag.PROMPT, _text(value.get("content")))],
            "system": lambda value: [Text(Tag.SYS, _text(value.get("content")))],
        }

    # -- lines

    def recognises(self, value: dict[str, Any]) -> bool:
        if is_rpc(value):
            return True
        role = value.get("role")
        known = isinstance(role, str) and role in _ROLES
        return known and ("content" in value or "tool_calls" in value or role == "meta")

    def feed(self, line: str) -> list[TranscriptEvent]:
        if self._reprs is not None:
            return self._note(line, self._reprs.feed(strip_escapes(line)))
        return super().feed(line)

    def usual(self) -> Usual | None:
        if self._acp.used:
            return self._acp.usual
        return (decode_line, self._usual) if self.structured and self._reprs is None else None

    def _usual(self, line: Line, events: list[TranscriptEvent]) -> bool:
        # Not by isinstance, which is slow to say no.
        if type(line) is Tool:
            if not line.call:
                return False
            if self._tail:
                self._tail.clear()
            self._answered = False
            content = line.content
            if type(content) is not str:
                content = "\n".join([part.text for part in content if part.text])  # type: ignore[union-attr]
            self._tools.end(events, line.call, content, None, self._code)
            return True
        if type(line) is not Assistant:
            return False
        calls = line.tool_calls
        for call in calls:
            if not call.id:
                return False
        if self._tail:
            self._tail.clear()
        self._answered = not calls
        self._retrying = None
        said = line.content
        if type(said) is str and not line.reasoning:
            if said:
                events.append(_words(said))
        else:
            _parts(line, events)
        for call in calls:
            self._tools.start(events, call.id, call.function.name or "tool", call.function.arguments)
        return True

    def on_object(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        if not self.structured:
            self.structured = True
            return [*self._release(Tag.SYS), *self.on_object(value)]
        if self._tail:
            self._tail.clear()
        role = value.get("role")
        handler = self._roles.get(role) if isinstance(role, str) else None
        if handler is not None:
            return handler(value)
        if is_rpc(value):
            return self._acp.feed(value)
        text = _notice(value)
        return [meta.unknown(value)] if text is None else [Text(Tag.SYS, text)]

    def on_text(self, line: str) -> list[TranscriptEvent]:
        bare = strip_escapes(line)
        if self.structured:
            self._tail.append(bare)
            return self._note(line, [Text(Tag.SYS, line)])
        if errors.is_stderr(bare):
            self._hint = errors.resume_id(bare) or self._hint
            if self._held is None:
                return [Text(Tag.SYS, line)]
            return self._hold(line)
        if self._held is None:
            return [Text(Tag.AI, self._unindented(line))]
        if begins(bare):
            self.structured = True
            self._reprs = ReprReader()
            return [*self._release(Tag.PROMPT), *self._reprs.feed(bare)]
        if bare.startswith(_BULLET) and not _first(self._held):
            self._bullets = True
            return [*self._release(Tag.SYS), Text(Tag.AI, self._unindented(line))]
        return self._hold(line)

    def _hold(self, line: str) -> list[TranscriptEvent]:
        assert self._held is not None
        self._held.append(line)
        self._held_size += len(line) + 1
        return self._release(Tag.AI) if self._held_size > deltas.MAX_HELD else []

    def feed_stderr(self, line: str) -> list[TranscriptEvent]:
        return self._note(line, [Text(Tag.SYS, line)])

    def _note(self, line: str, events: list[TranscriptEvent]) -> list[TranscriptEvent]:
        """Remembers what only stderr tells. Kimi Code copies tools' output there, so it counts at the end at most."""
        bare = strip_escapes(line)
        hint = errors.resume_id(bare)
        if hint is not None:
            self._hint = hint
            self._problem = None
        else:
            self._problem = errors.code_error(bare) or self._problem
        return events

    def _unindented(self, line: str) -> str:
        """Kimi Code's text: a bullet before each message, and its other lines indented."""
        return line[2:] if self._bullets and line.startswith((_BULLET, "  ")) else line

    def _release(self, tag: Tag) -> list[TranscriptEvent]:
        held, self._held = self._held or [], None
        return [Text(Tag.SYS if errors.is_stderr(strip_escapes(line)) else tag, line) for line in held]

    def flush(self) -> list[TranscriptEvent]:
        events = super().flush()
        if self._acp.used:
            return events + self._acp.flush()
        events += self._flush_held()
        if self._hint is not None and self._session is None:
            events.append(meta.session(self._hint))
        if self._reprs is not None:
            return events + self._reprs.flush()
        if self._problem is not None and not self._ended:
            return events + errors.fatal(self._problem)
        if not self.structured or self._ended:
            return events
        told = errors.told(self._tail)
        if told:
            return events + told
        refused = self._tools.refused()
        if refused is not None:
            events.append(meta.error(*refused))
        elif not self._answered or (self._code and self._hint is None):
            events.append(self._retrying or meta.error(_CUT))
        return events

    def _flush_held(self) -> list[TranscriptEvent]:
        """Text all along: a final message, or an error before there was anything to say."""
        held = [strip_escapes(line) for line in self._held or []]
        first = _first(held)
        if errors.is_own(first):
            return [*self._release(Tag.SYS), *errors.told(held)]
        if errors.code_error(first) is not None:
            self._problem = errors.code_error(first)
            return self._release(Tag.SYS)
        return self._release(Tag.AI)

    # -- stream-json

    def _assistant(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        events: list[TranscriptEvent] = []
        if "reasoning_content" in value:
            thought = get_str(value, "reasoning_content")
            events += [] if thought is None else [Text(Tag.THINK, thought)]
        content = value.get("content")
        if isinstance(content, str):
            if content:
                events.append(_words(content))
        elif isinstance(content, list):
            events += [event for event in map(_part, content) if event is not None]
        calls = get_list(value, "tool_calls") if "tool_calls" in value else []
        for call in calls:
            function = get_dict(call, "function")
            identity = get_str(call, "id")
            if identity is None:
                events.append(meta.unknown(call))
            else:
                name = get_str(function, "name") or "tool"
                self._tools.start(events, identity, name, function.get("arguments"))
        self._answered = not calls
        self._retrying = None
        return events

    def _tool(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        call = get_str(value, "tool_call_id", "id")
        if call is None:
            return [meta.unknown(value)]
        self._answered = False
        events: list[TranscriptEvent] = []
        self._tools.end(events, call, _text(value.get("content")), None, self._code)
        return events

    def _meta(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self._code = True
        match value.get("type"):
            case "system.version":
                return []
            case "turn.step.retrying":
                return self._retry(value)
            case "session.resume_hint":
                return self._end(get_str(value, "session_id"))
        return [meta.unknown(value)]

    def _retry(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        message = get_str(value, "error_message", "error_name") or "the model call failed"
        kind = classify(message, get_int(value, "status_code"))
        self._retrying = meta.error(f"{message} (it was still retrying)", kind)
        attempt, delay = get_count(value, "failed_attempt"), get_count(value, "delay_ms")
        return [meta.retry(message, kind, attempt=attempt, delay_ms=delay)]

    def _end(self, session: str | None) -> list[TranscriptEvent]:
        self._ended = True
        events: list[TranscriptEvent] = []
        if session is not None and self._session is None:
            self._session = session
            events.append(meta.session(session))
        refused = self._tools.refused()
        if refused is not None:
            return [*events, meta.result(ok=False, reason=refused[0], error_class=refused[1])]
        return [*events, meta.result(ok=True)]


def _first(lines: list[str]) -> str:
    """The first line of stdout that says something."""
    return next((line for line in map(strip_escapes, lines) if line.strip() and not errors.is_stderr(line)), "")


def _words(text: str) -> Text:
    if " hook" in text[:60] and _HOOK.match(text):
        return Text(Tag.SYS, text.removesuffix("\n"))
    return Text(_AI, text[:-1] if text[-1] == "\n" else text)


def _parts(line: Assistant, events: list[TranscriptEvent]) -> None:
    """A message with thoughts."""
    if line.reasoning:
        events.append(Text(_THINK, line.reasoning))
    content = line.content
    if type(content) is str:
        if content:
            events.append(_words(content))
    elif content is not None:
        for part in content:
            if type(part) is TextPart:
                if part.text:
                    events.append(_words(part.text))
            elif type(part) is ThinkPart and part.think:
                events.append(Text(_THINK, part.think.removesuffix("\n")))


def _part(part: Any) -> TranscriptEvent | None:
    if isinstance(part, str):
        return _words(part) if part else None
    if isinstance(part, dict):
        text = part.get("text")
        if part.get("type") == "text" and isinstance(text, str):
            return _words(text) if text else None
        thought = part.get("think")
        if isinstance(thought, str):
            return Text(Tag.THINK, thought.removesuffix("\n")) if thought else None
    return meta.unknown(part)


def _text(content: Any) -> str:
    """A tool's result: a string, or the texts of its parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(t for t in (p if isinstance(p, str) else get_str(p, "text") for p in content) if t)


def _notice(value: dict[str, Any]) -> str | None:
    """A notification or a plan of kimi-cli, for people to see."""
    if "file_path" in value:
        return get_str(value, "content")
    if "severity" in value or "body" in value:
        return "\n".join(t for t in (get_str(value, "title"), get_str(value, "body")) if t) or None
    return None


ADAPTER = KimiAdapter
