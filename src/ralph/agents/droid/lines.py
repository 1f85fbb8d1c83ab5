"""The usual lines of Droid's stream-json as types; a line that does not fit is read as an object."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec


class Message(msgspec.Struct, gc=False, tag="message"):
    id: str
    text: str
    role: str
    session_id: str


class Reasoning(msgspec.Struct, gc=False, tag="reasoning"):
    id: str
    text: str


class ToolUse(msgspec.Struct, gc=False, tag="tool_call"):
    id: str
    name: str = msgspec.field(name="toolName")
    parameters: dict[str, Any] | None = None


class ToolDone(msgspec.Struct, gc=False, tag="tool_result"):
    id: str
    value: str
    failed: bool = msgspec.field(name="isError")
    duration_ms: None = msgspec.field(default=None, name="durationMs")


Line: TypeAlias = Message | Reasoning | ToolUse | ToolDone
_decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)
decode_line = _decoder.decode
