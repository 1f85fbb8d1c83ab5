"""The usual lines of Cursor's stream-json as types; a line that does not fit is read as an object."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET

__all__ = ["UNSET", "Assistant", "Line", "Thinking", "ToolCall", "User", "decode_line"]


class TextBlock(msgspec.Struct, gc=False, tag="text"):
    text: str


class Message(msgspec.Struct, gc=False):
    content: list[TextBlock]


class Thinking(msgspec.Struct, gc=False, tag="thinking"):
    subtype: str
    text: str = ""


class Assistant(msgspec.Struct, gc=False, tag="assistant"):
    message: Message
    timestamp_ms: Any = UNSET
    model_call_id: Any = UNSET


class User(msgspec.Struct, gc=False, tag="user"):
    message: Message


class Body(msgspec.Struct, gc=False):
    args: dict[str, Any] | None = None
    result: dict[str, Any] | None = None


class ToolCall(msgspec.Struct, gc=False, tag="tool_call"):
    subtype: str
    call_id: str
    tool_call: dict[str, Body]


Line: TypeAlias = Thinking | Assistant | User | ToolCall
_decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)
decode_line = _decoder.decode
