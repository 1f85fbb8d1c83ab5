"""Kimi's usual lines, an assistant's messages and tools' results, as types; others are read as objects."""

from __future__ import annotations

from typing import TypeAlias

import msgspec


class TextPart(msgspec.Struct, gc=False, tag="text"):
    text: str


class ThinkPart(msgspec.Struct, gc=False, tag="think"):
    think: str


class Function(msgspec.Struct, gc=False):
    name: str
    arguments: str


class Call(msgspec.Struct, gc=False):
    id: str
    function: Function


class Assistant(msgspec.Struct, gc=False, tag_field="role", tag="assistant"):
    content: str | list[TextPart | ThinkPart] | None = None
    tool_calls: list[Call] = []
    reasoning: str = msgspec.field(default="", name="reasoning_content")


class Tool(msgspec.Struct, gc=False, tag_field="role", tag="tool"):
    call: str = msgspec.field(name="tool_call_id")
    content: str | list[TextPart]


Line: TypeAlias = Assistant | Tool
_decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)
decode_line = _decoder.decode
