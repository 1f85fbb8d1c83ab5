"""The usual lines of Claude Code's schema as types, with only the fields that are read.

Most lines of a run are fragments, words, calls and their results, and a result's output stands in its line twice: what
is not read is not decoded. A line that is otherwise (another type of block, a subagent's) does not fit, and is read
as an object.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec

_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]


class TextBlock(msgspec.Struct, gc=False, tag="text"):
    text: str


class ThinkingBlock(msgspec.Struct, gc=False, tag="thinking"):
    thinking: str


class ToolUse(msgspec.Struct, gc=False, tag="tool_use"):
    id: str
    name: str
    input: dict[str, Any]


class ToolResultBlock(msgspec.Struct, gc=False, tag="tool_result"):
    tool_use_id: str
    content: Any = None
    is_error: bool | None = None


class Message(msgspec.Struct, gc=False):
    content: list[TextBlock | ThinkingBlock | ToolUse]
    id: str | None = None
    model: str | None = None
    #: kept as it stands: of most messages it is never read
    usage: msgspec.Raw = msgspec.Raw(b"")


class Assistant(msgspec.Struct, gc=False, tag="assistant"):
    message: Message
    parent_tool_use_id: None = None
    is_api_error_message: bool = False


class Details(msgspec.Struct, gc=False):
    """What the CLI tells beside a result."""

    interrupted: bool = False
    duration_ms: _Count | None = None
    a_duration: _Count | None = msgspec.field(default=None, name="durationMs")
    total_duration: _Count | None = msgspec.field(default=None, name="totalDurationMs")

    @property
    def milliseconds(self) -> int | None:
        if self.a_duration is not None:
            return self.a_duration
        return self.duration_ms if self.total_duration is None else self.total_duration


class Told(msgspec.Struct, gc=False):
    content: list[ToolResultBlock | TextBlock]


class User(msgspec.Struct, gc=False, tag="user"):
    message: Told
    parent_tool_use_id: None = None
    tool_use_result: Details | str | list[Any] | None = None


class Delta(msgspec.Struct, gc=False):
    type: str = ""
    text: str = ""
    thinking: str = ""
    partial_json: str = ""


class Begun(msgspec.Struct, gc=False):
    """A message that is going to be streamed."""

    id: str | None = None
    model: str | None = None
    usage: msgspec.Raw = msgspec.Raw(b"")


class Event(msgspec.Struct, gc=False):
    type: str
    delta: Delta | None = None
    content_block: dict[str, Any] | None = None
    message: Begun | None = None
    usage: msgspec.Raw = msgspec.Raw(b"")


class StreamEvent(msgspec.Struct, gc=False, tag="stream_event"):
    event: Event
    parent_tool_use_id: None = None


class System(msgspec.Struct, gc=False, tag="system"):
    """Whatever the CLI says of itself, of which much is not worth reading."""

    subtype: str


Line: TypeAlias = Assistant | User | StreamEvent | System
_decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)
decode_line = _decoder.decode
