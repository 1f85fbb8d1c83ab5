"""The text format of kimi-cli: every message as the repr of a Python record, wrapped at 80 columns.

A wrap can fall anywhere, even inside a marker. Lines are joined without a space: if kimi-cli dropped one at a wrap, the
output does not show where.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Any

from ralph.agents.kimi.errors import ERROR_LINES, own_error
from ralph.agents.kimi.repr import Record, parse
from ralph.agents.kimi.tools import KimiTools, content_text
from ralph.transcripts import meta
from ralph.transcripts.classify import classify
from ralph.transcripts.errors import CUT
from ralph.transcripts.events import Tag, Text, ToolStatus, TranscriptEvent, Usage, UsageEvent
from ralph.transcripts.json_lines import get_count, get_dict, get_float, get_str

#: The first line of a record, which may be the only one.
_BEGIN = re.compile(r"[A-Z]\w*\((?:.*\))?$")
_MAX_RECORD = 64 << 20
_QUIET = frozenset({"StepBegin", "StepInterrupted", "ToolCallPart", "CompactionBegin", "CompactionEnd"})


class ReprReader:
    @staticmethod
    def recognises(line: str) -> bool:
        """Whether a line is the first record of this format."""
        return line.startswith("TurnBegin(")

    def __init__(self) -> None:
        self._tools = KimiTools()
        self._lines: list[str] = []  # of an incomplete record
        self._size = 0
        self._rest: deque[str] = deque(maxlen=ERROR_LINES)  # what follows the last record
        self._ended = False

    def feed(self, line: str) -> list[TranscriptEvent]:
        if not self._lines and not _BEGIN.match(line):
            self._rest.append(line)
            return [Text(Tag.SYS, line)]
        self._lines.append(line)
        self._size += len(line)
        only = len(self._lines) == 1
        if line == ")" or (only and line.endswith(")")):
            record = parse("".join(self._lines))
            if record is not None:
                return self._record(record)
            return self._give_up() if only else []
        return self._give_up() if self._size > _MAX_RECORD else []

    def flush(self) -> list[TranscriptEvent]:
        events = self._give_up()
        error = own_error(self._rest)
        if error or self._ended:
            return events + error
        return [*events, meta.error(CUT)]

    def _take(self) -> list[str]:
        lines, self._lines, self._size = self._lines, [], 0
        return lines

    def _give_up(self) -> list[TranscriptEvent]:
        lines = self._take()
        self._rest += lines
        return [Text(Tag.SYS, line) for line in lines]

    def _record(self, record: Record) -> list[TranscriptEvent]:
        lines, (name, fields) = self._take(), record
        self._rest.clear()
        match name:
            case "TextPart":
                return _text(Tag.AI, fields.get("text"))
            case "ThinkPart":
                return _text(Tag.THINK, fields.get("think"))
            case "TurnBegin":
                self._ended = False
                return _text(Tag.PROMPT, content_text(fields.get("user_input")))
            case "TurnEnd":
                self._ended = True
                return [self._tools.result()]
            case "ToolCall" if call := get_str(fields, "id"):
                return self._tools.begin(call, get_dict(fields, "function"))
            case "ToolResult" if call := get_str(fields, "tool_call_id"):
                return self._tool_result(call, get_dict(fields, "return_value"))
            case "StatusUpdate":
                return _usage(get_dict(fields, "token_usage"))
            case "StepRetry":
                return [_retry(fields)]
            case _ if name in _QUIET:
                return []
        return [Text(Tag.SYS, line) for line in lines]

    def _tool_result(self, call: str, value: dict[str, Any]) -> list[TranscriptEvent]:
        output = content_text(value.get("output")) or content_text(value.get("message"))
        failed = value.get("is_error")
        status = ToolStatus.FAIL if failed is True else ToolStatus.OK if failed is False else ToolStatus.UNKNOWN
        return self._tools.finish(call, output, status)


def _text(tag: Tag, text: Any) -> list[TranscriptEvent]:
    return [Text(tag, text.removesuffix("\n"))] if isinstance(text, str) and text else []


def _usage(tokens: dict[str, Any]) -> list[TranscriptEvent]:
    """The tokens of one model call. The cached ones are not part of `input_other`."""
    other, output = get_count(tokens, "input_other"), get_count(tokens, "output")
    read, written = get_count(tokens, "input_cache_read"), get_count(tokens, "input_cache_creation")
    if other is None and output is None:
        return []
    prompt = None if other is None else other + (read or 0) + (written or 0)
    return [UsageEvent(Usage(prompt, output, cached_tokens=read, cache_write_tokens=written))]


def _retry(fields: dict[str, Any]) -> TranscriptEvent:
    status, next_attempt = get_count(fields, "status_code"), get_count(fields, "next_attempt")
    wait = get_float(fields, "wait_s")
    message = f"{get_str(fields, 'error_type') or 'error'}{'' if status is None else f' {status}'}"
    return meta.retry(
        message,
        classify(message, status),
        attempt=None if next_attempt is None else next_attempt - 1,
        delay_ms=None if wait is None else int(wait * 1000),
    )
