"""The usual lines of Cline's `--json` as types: each fragment carries all that came before it, which is not decoded.

A line that does not fit is read as an object.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec

#: How every line begins.
HOT = '{"ts":'

_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]


class Event(msgspec.Struct, gc=False, rename="camel"):
    type: str
    content_type: str = ""
    text: str | None = None
    reasoning: str | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    input: dict[str, Any] | None = None
    output: Any = None
    error: Any = None
    duration_ms: _Count | None = None
    input_tokens: _Count | None = None
    output_tokens: _Count | None = None
    cache_read_tokens: _Count | None = None
    cache_write_tokens: _Count | None = None
    total_cost: float | None = None
    reason: str | None = None
    parent_agent_id: str | None = None


class AgentEvent(msgspec.Struct, gc=False, tag="agent_event", rename="camel"):
    event: Event
    parent_agent_id: str | None = None


class HookEvent(msgspec.Struct, gc=False, tag="hook_event"):
    pass


Line: TypeAlias = AgentEvent | HookEvent
_decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)
decode_line = _decoder.decode
