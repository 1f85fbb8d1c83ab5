"""The text format of kimi-cli: every wire message as the repr of a Python object."""

from __future__ import annotations

import re
from collections import deque
from typing import Any

from ralph.agents.kimi.errors import told
from ralph.agents.kimi.repr import Record, parse
from ralph.agents.kimi.tools import KimiTools
from ralph.transcripts import meta
from ralph.transcripts.classify import classify
from ralph.transcripts.events import Tag, Text, ToolStatus, TranscriptEvent, Usage, UsageEvent
from ralph.transcripts.json_lines import get_count, get_float

_CUT = "the output ends without a result"
#: A record's first line. One that fits into a line has no other.
_BEGIN = re.compile(r"[A-Z]\w*\((?:.*\))?$")
_MAX_RECORD = 64 << 20
#: An error is told in the last lines of all, and in fewer than these.
ERROR_LINES = 200
_QUIET = frozenset({"StepBegin", "StepInterrupted", "ToolCallPart", "CompactionBegin", "CompactionEnd"})


def begins(line: str) -> bool:
    return line.startswith("TurnBegin(")


class ReprReader:
    def __init__(self) -> None:
        self._tools = KimiTools()
        self._lines: list[str] = []  # of a record that is not whole yet
        self._size = 0
        self._rest: deque[str] = deque(maxlen=ERROR_LINES)  # what came after the last record
        self._ended = False

    def feed(self, line: str) -> list[TranscriptEvent]:
        if not self._lines:
            if _BEGIN.match(line) is None:
                self._rest.append(line)
                return [Text(Tag.SYS, line)]
            self._size = 0
        self._lines.append(line)
        self._size += len(line)
        if not line.endswith(")") or (len(self._lines) > 1 and line != ")"):
            return self._give_up() if self._size > _MAX_RECORD else []
        record = parse("".join(self._lines))
        if record is None:
            return self._give_up() if len(self._lines) == 1 else []
        lines, self._lines = self._lines, []
        self._rest.clear()
        return self._record(record, lines)

    def flush(self) -> list[TranscriptEvent]:
        events = self._give_up()
        error = told(self._rest)
        if error:
            return events + error
        return events if self._ended else [*events, meta.error(_CUT)]

    def _give_up(self) -> list[TranscriptEvent]:
        lines, self._lines = self._lines, []
        self._rest += lines
        return [Text(Tag.SYS, line) for line in lines]

    def _record(self, record: Record, lines: list[str]) -> list[TranscriptEvent]:
        fields = record.fields
        match record.name:
            case "TextPart":
                return _words(Tag.AI, fields.get("text"))
            case "ThinkPart":
                return _words(Tag.THINK, fields.get("think"))
            case "TurnBegin":
                self._ended = False
                return _words(Tag.PROMPT, _text(fields.get("user_input")))
            case "ToolCall":
                function = _fields(fields.get("function"))
                call, name = fields.get("id"), function.get("name")
                if isinstance(call, str) and call:
                    started: list[TranscriptEvent] = []
                    self._tools.start(started, call, str(name or "tool"), function.get("arguments"))
                    return started
            case "ToolResult":
                call = fields.get("tool_call_id")
                if isinstance(call, str) and call:
                    return self._result(call, _fields(fields.get("return_value")))
            case "StatusUpdate":
                usage = _usage(_fields(fields.get("token_usage")))
                return [] if usage is None else [UsageEvent(usage)]
            case "StepRetry":
                return [_retry(fields)]
            case "TurnEnd":
                return [self._end()]
            case name if name in _QUIET:
                return []
        return [Text(Tag.SYS, line) for line in lines]

    def _result(self, call: str, value: dict[str, Any]) -> list[TranscriptEvent]:
        output = _text(value.get("output")) or _text(value.get("message"))
        match value.get("is_error"):
            case True:
                status = ToolStatus.FAIL
            case False:
                status = ToolStatus.OK
            case _:
                status = ToolStatus.UNKNOWN
        events: list[TranscriptEvent] = []
        self._tools.end(events, call, output, status)
        return events

    def _end(self) -> TranscriptEvent:
        self._ended = True
        refused = self._tools.refused()
        if refused is None:
            return meta.result(ok=True)
        return meta.result(ok=False, reason=refused[0], error_class=refused[1])


def _fields(value: Any) -> dict[str, Any]:
    return value.fields if isinstance(value, Record) else {}


def _text(value: Any) -> str:
    """A string, or the texts of a list of parts."""
    match value:
        case str():
            return value
        case Record():
            text = value.fields.get("text")
            return text if isinstance(text, str) else ""
        case list():
            return "\n".join(t for t in map(_text, value) if t)
    return ""


def _words(tag: Tag, text: Any) -> list[TranscriptEvent]:
    return [Text(tag, text.removesuffix("\n"))] if isinstance(text, str) and text else []


def _usage(fields: dict[str, Any]) -> Usage | None:
    """Of one model call; the new tokens and those of the cache are counted apart."""
    other, output = get_count(fields, "input_other"), get_count(fields, "output")
    read, written = get_count(fields, "input_cache_read"), get_count(fields, "input_cache_creation")
    if other is None and output is None:
        return None
    return Usage(
        prompt_tokens=None if other is None else other + (read or 0) + (written or 0),
        completion_tokens=output,
        cached_tokens=read,
        cache_write_tokens=written,
    )


def _retry(fields: dict[str, Any]) -> TranscriptEvent:
    status = get_count(fields, "status_code")
    message = f"{fields.get('error_type') or 'error'}{'' if status is None else f' {status}'}"
    wait = get_float(fields, "wait_s")
    delay = None if wait is None else int(wait * 1000)
    attempt = get_count(fields, "next_attempt")
    return meta.retry(
        message, classify(message, status), attempt=None if attempt is None else attempt - 1, delay_ms=delay
    )
