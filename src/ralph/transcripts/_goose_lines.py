"""Goose's usual lines, fragments of a model's words and thoughts, as types; others are read as objects."""

from __future__ import annotations

from typing import Any

import msgspec

#: How every line of a message begins.
HOT = '{"type":"message"'


class Words(msgspec.Struct, gc=False, tag="text"):
    text: str


class Thought(msgspec.Struct, gc=False, tag="thinking"):
    thinking: str


class Inference(msgspec.Struct, gc=False):
    """Which model wrote it; of messages that goose wrote it is absent."""

    requested: str | None = msgspec.field(default=None, name="requestedModel")
    model: str | None = None


class Metadata(msgspec.Struct, gc=False):
    inference: Inference
    visible: Any = msgspec.field(default=True, name="userVisible")


class Message(msgspec.Struct, gc=False):
    id: str
    role: str
    content: list[Words | Thought]
    metadata: Metadata


class Line(msgspec.Struct, gc=False, tag="message"):
    message: Message


_decoder = msgspec.json.Decoder(Line)
decode_line = _decoder.decode
