"""The canonical transcript: six event types, whose JSON is RTF1.

Everything that an agent prints becomes a sequence of these. The journal, `ralph replay --json`, `--ui json` and the
lines that a custom agent prints after `@@RALPH@@ ` all use this format.
"""

from __future__ import annotations

import json
import math
import re
from enum import StrEnum
from typing import Annotated, Any, TypeAlias

import msgspec


class Tag(StrEnum):
    """Whose text a `text` event holds."""

    AI = "AI"
    THINK = "THINK"
    SYS = "SYS"
    TOOL = "TOOL"
    PROMPT = "PROMPT"
    USER = "USER"


class ToolStatus(StrEnum):
    OK = "ok"
    FAIL = "fail"
    UNKNOWN = "unknown"


#: Limits and budgets are sums of these, so a negative one would reduce what was used.
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
_Amount: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1e15)]


class ToolCall(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    name: str
    input: dict[str, Any] | None = None


class ToolRef(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    name: str | None = None


class ToolResult(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    status: ToolStatus
    duration_ms: _Count | None = None
    name: str | None = None


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Token counts as the agent reports them. A number that it does not report is None, never 0.

    `prompt_tokens` includes `cached_tokens`, which were read from the cache. An `interim` count is one of a message
    while the agent works: the next count that is not interim includes it. `at_least` marks a lower bound.
    """

    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None
    total_tokens: _Count | None = None
    model: str | None = None
    cached_tokens: _Count | None = None
    cache_write_tokens: _Count | None = None
    reasoning_tokens: _Count | None = None
    cost_usd: _Amount | None = None
    interim: bool = False
    at_least: bool = False


class _Base(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type"):
    pass


class Text(_Base, frozen=True, tag="text"):
    """One or more lines, with an implied newline at the end."""

    tag: Tag
    text: str


class ToolStart(_Base, frozen=True, tag="tool_start"):
    tool: ToolCall


class ToolOutput(_Base, frozen=True, tag="tool_output"):
    tool: ToolRef
    text: str


class ToolEnd(_Base, frozen=True, tag="tool_end"):
    tool: ToolResult


class UsageEvent(_Base, frozen=True, tag="usage"):
    usage: Usage


class Meta(_Base, frozen=True, tag="meta"):
    """Everything else, each under a `kind`: see `ralph.transcripts.meta`."""

    meta: dict[str, Any]


TranscriptEvent: TypeAlias = Text | ToolStart | ToolOutput | ToolEnd | UsageEvent | Meta

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[TranscriptEvent] = msgspec.json.Decoder(TranscriptEvent)
_any_decoder = msgspec.json.Decoder()
_SURROGATE = re.compile("[\ud800-\udfff]")
#: How much of an event is written if it is nested too deeply.
_DEEPEST = 50


class EventError(ValueError):
    """A line is not an event. The message says why."""


def encode(event: TranscriptEvent) -> bytes:
    """Return the event as one line of JSON, without a newline."""
    try:
        return _encoder.encode(event)
    except (UnicodeEncodeError, RecursionError):
        # A lone surrogate, which UTF-8 cannot hold, or a value that was decoded where the stack had more room.
        return _encoder.encode(replace_surrogates(event, _DEEPEST))


def encode_lines(events: list[TranscriptEvent]) -> bytes:
    """Return the events as lines of JSON, each with a newline."""
    try:
        return _encoder.encode_lines(events)
    except (UnicodeEncodeError, RecursionError):
        return b"".join([encode(event) + b"\n" for event in events])


def decode(line: str | bytes) -> TranscriptEvent:
    """Read one event from its JSON. Raises EventError."""
    try:
        return _decoder.decode(line)
    except msgspec.ValidationError as error:
        raise EventError(str(error)) from None
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        reason = str(error)
    try:
        # msgspec rejects lone surrogates in escapes, which json accepts.
        event: TranscriptEvent = msgspec.convert(decode_json(line), TranscriptEvent)
    except msgspec.ValidationError as error:
        raise EventError(str(error)) from None
    except (ValueError, RecursionError):
        raise EventError(reason) from None
    return event


def decode_json(line: str | bytes) -> Any:
    """Read any JSON value. Lone surrogates become U+FFFD; NaN and infinite numbers become None.

    Raises ValueError or RecursionError.
    """
    try:
        return _any_decoder.decode(line)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return replace_surrogates(json.loads(line, parse_constant=_nothing, parse_float=_finite))


def _nothing(word: str) -> None:
    """Replaces NaN and Infinity, which some programs write although JSON does not have them."""


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


def replace_surrogates(value: Any, depth: int = -1) -> Any:
    """Return the value without lone surrogates and, unless it is negative, without what is nested below `depth`."""
    match value:
        case dict() | list() | tuple() if depth == 0:
            return "…"
        case str():
            return _SURROGATE.sub("\ufffd", value)
        case dict():
            return {replace_surrogates(k): replace_surrogates(v, depth - 1) for k, v in value.items()}
        case list():
            return [replace_surrogates(v, depth - 1) for v in value]
        case tuple():
            return tuple(replace_surrogates(v, depth - 1) for v in value)
        case msgspec.Struct():
            fields = (getattr(value, name) for name in value.__struct_fields__)
            return type(value)(*(replace_surrogates(field, depth - 1) for field in fields))
        case _:
            return value
