"""The usual lines of Gemini CLI's stream-json as types; a line that does not fit is read as an object."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec


class Message(msgspec.Struct, gc=False, tag="message"):
    role: str
    content: str
    delta: bool = False


class ToolUse(msgspec.Struct, gc=False, tag="tool_use"):
    tool_id: str
    tool_name: str
    parameters: dict[str, Any] = {}


class Result(msgspec.Struct, gc=False, tag="tool_result"):
    tool_id: str
    status: str
    output: str = ""
    error: None = None
    duration_ms: None = None


Line: TypeAlias = Message | ToolUse | Result
_decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)
decode_line = _decoder.decode
