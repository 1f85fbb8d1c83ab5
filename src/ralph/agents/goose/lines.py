"""Goose's usual lines (fragments of words and thoughts, calls, results) as types; others are read as objects."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec

_Id: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]


class Words(msgspec.Struct, gc=False, tag="text"):
    text: str


class Thought(msgspec.Struct, gc=False, tag="thinking"):
    thinking: str


class Request(msgspec.Struct, gc=False):
    name: str
    arguments: dict[str, Any] = {}


class Requested(msgspec.Struct, gc=False):
    value: Request


class Call(msgspec.Struct, gc=False, tag="toolRequest", rename="camel"):
    id: _Id
    tool_call: Requested


class Structured(msgspec.Struct, gc=False):
    """A command's result once more; of other tools it may hold anything."""

    exit_code: Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]


class Result(msgspec.Struct, gc=False, rename="camel"):
    content: list[Words]
    structured_content: Structured | None = None
    is_error: bool = False


class Answered(msgspec.Struct, gc=False):
    status: str
    value: Result
    error: None = None


class Answer(msgspec.Struct, gc=False, tag="toolResponse", rename="camel"):
    id: _Id
    tool_result: Answered


Block: TypeAlias = Words | Thought | Call | Answer


class Inference(msgspec.Struct, gc=False):
    """Which model wrote it; of messages that goose wrote it is absent."""

    requested: str | None = msgspec.field(default=None, name="requestedModel")
    model: str | None = None


class Metadata(msgspec.Struct, gc=False):
    inference: Inference | msgspec.UnsetType = msgspec.UNSET
    visible: Any = msgspec.field(default=True, name="userVisible")


class Message(msgspec.Struct, gc=False):
    id: str
    role: str
    content: list[Block]
    metadata: Metadata


class Line(msgspec.Struct, gc=False, tag="message"):
    message: Message


_decoder = msgspec.json.Decoder(Line)
decode_line = _decoder.decode
