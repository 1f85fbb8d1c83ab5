"""The usual updates of the Agent Client Protocol as types; a line that does not fit is read as an object."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from ralph.transcripts.json_lines import MOST

_Id: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]


class Words(msgspec.Struct, gc=False):
    text: str
    content: None = None


class MessageChunk(msgspec.Struct, gc=False, tag_field="sessionUpdate", tag="agent_message_chunk"):
    content: Words


class ThoughtChunk(msgspec.Struct, gc=False, tag_field="sessionUpdate", tag="agent_thought_chunk"):
    content: Words


class Wrapped(msgspec.Struct, gc=False):
    """What a tool printed."""

    content: Words
    type: Literal["content"]


class _Tool(msgspec.Struct, gc=False, rename="camel"):
    tool_call_id: _Id
    status: str | None = None
    content: list[Wrapped] | None = None
    raw_output: Any = None


class Called(_Tool, gc=False, tag_field="sessionUpdate", tag="tool_call", rename="camel"):
    title: str | None = None
    kind: str | None = None
    raw_input: dict[str, Any] | None = None


class CallUpdate(_Tool, gc=False, tag_field="sessionUpdate", tag="tool_call_update"):
    pass


class Cost(msgspec.Struct, gc=False):
    amount: Annotated[float, msgspec.Meta(ge=0, lt=MOST)]
    currency: str


class UsageUpdate(msgspec.Struct, gc=False, tag_field="sessionUpdate", tag="usage_update"):
    cost: Cost | None = None


class InfoUpdate(msgspec.Struct, gc=False, tag_field="sessionUpdate", tag="session_info_update"):
    pass


class CommandsUpdate(msgspec.Struct, gc=False, tag_field="sessionUpdate", tag="available_commands_update"):
    pass


class Params(msgspec.Struct, gc=False):
    update: MessageChunk | ThoughtChunk | Called | CallUpdate | UsageUpdate | InfoUpdate | CommandsUpdate


class Line(msgspec.Struct, gc=False):
    params: Params
    jsonrpc: Literal["2.0"]
    method: Literal["session/update"]
    #: an object that is also of another format, or an answer, is not usual
    type: None = None
    error: None = None


_decoder = msgspec.json.Decoder(Line)
decode_line = _decoder.decode
