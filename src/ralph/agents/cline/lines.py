"""The usual lines of Cline's `--json` as types: each fragment carries all that came before it, which is not decoded.

A line that does not fit is read as an object.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec

_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]


class Event(msgspec.Struct, gc=False, rename="camel"):
    parent_agent_id: str | None = None


class Content(Event, gc=False, rename="camel"):
    content_type: str = ""
    text: str | None = None
    reasoning: str | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    input: dict[str, Any] | None = None


class Started(Content, gc=False, tag="content_start"):
    """A fragment of words or of a thought, or a call."""


class Ended(Content, gc=False, tag="content_end", rename="camel"):
    output: Any = None
    error: Any = None
    duration_ms: _Count | None = None


class Update(Event, gc=False, tag="content_update"):
    """Of a tool's output, which comes whole at its end."""


class StepStarted(Event, gc=False, tag="iteration_start"):
    pass


class StepEnded(Event, gc=False, tag="iteration_end"):
    pass


class Counted(Event, gc=False, tag="usage", rename="camel"):
    input_tokens: _Count | None = None
    output_tokens: _Count | None = None
    cache_read_tokens: _Count | None = None
    cache_write_tokens: _Count | None = None
    total_cost: float | None = None


class Done(Event, gc=False, tag="done"):
    reason: str | None = None


class AgentEvent(msgspec.Struct, gc=False, tag="agent_event", rename="camel"):
    event: Started | Ended | Update | StepStarted | StepEnded | Counted | Done
    parent_agent_id: str | None = None


class HookEvent(msgspec.Struct, gc=False, tag="hook_event"):
    pass


Line: TypeAlias = AgentEvent | HookEvent
_decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)
decode_line = _decoder.decode
