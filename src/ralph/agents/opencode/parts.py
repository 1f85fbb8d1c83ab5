"""opencode's lines as types: only the fields that are read, each of which may be absent or of another type.

Decoding these is quicker than decoding everything: a command's output, for one, stands in its line twice.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ralph.transcripts.json_lines import get_dict


class Metadata(msgspec.Struct, gc=False):
    exit: Any = 0


class Time(msgspec.Struct, gc=False):
    start: Any = None
    end: Any = None


class State(msgspec.Struct, gc=False):
    status: Any = None
    input: Any = None
    output: Any = None
    error: Any = None
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    time: Time = msgspec.field(default_factory=Time)


class Cache(msgspec.Struct, gc=False):
    read: Any = None
    write: Any = None


class Tokens(msgspec.Struct, gc=False):
    input: Any = None
    output: Any = None
    reasoning: Any = None
    total: Any = None
    cache: Cache | None = None


class Part(msgspec.Struct, gc=False):
    id: Any = None
    session: Any = msgspec.field(default=None, name="sessionID")
    text: Any = None
    synthetic: Any = None
    tool: Any = None
    call: Any = msgspec.field(default=None, name="callID")
    state: State | None = None
    reason: Any = None
    tokens: Tokens | None = None
    cost: Any = None
    error: Any = None
    attempt: Any = None
    snapshot: Any = None


class Line(msgspec.Struct, gc=False):
    type: Any = None
    session: Any = msgspec.field(default=None, name="sessionID")
    part: Part | None = None
    error: Any = None


_decoder = msgspec.json.Decoder(Line)
decode_line = _decoder.decode


def lenient(value: dict[str, Any]) -> Line:
    """The same of a line in which something that should be an object is none: that is left out."""
    part = get_dict(value, "part")
    state = get_dict(part, "state")
    state = state | {"metadata": get_dict(state, "metadata"), "time": get_dict(state, "time")}
    tokens = get_dict(part, "tokens")
    tokens = tokens | {"cache": get_dict(tokens, "cache")}
    return msgspec.convert(value | {"part": part | {"state": state, "tokens": tokens}}, Line)


def whole_number(value: Any) -> int | None:
    """A count, if it is one."""
    if type(value) is int:
        return value if 0 <= value < 1 << 53 else None
    if type(value) is float and 0 <= value < 1 << 53:
        return int(value)
    return None


def text_of(value: Any) -> str:
    """A string as it is, nothing for nothing, anything else as JSON."""
    if type(value) is str:
        return value
    return "" if value is None else msgspec.json.encode(value).decode()
