"""The usual lines of pi's `--mode json` as types: each fragment carries the whole message so far, which is not decoded.

A line that does not fit is read as an object.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec


class Fragment(msgspec.Struct, gc=False):
    type: str
    delta: str = ""


class Update(msgspec.Struct, gc=False, tag="message_update", rename="camel"):
    assistant_message_event: Fragment


class Begun(msgspec.Struct, gc=False, tag="message_start"):
    """What it says comes in fragments, and whole at its end."""


class Called(msgspec.Struct, gc=False, tag="tool_execution_start", rename="camel"):
    tool_call_id: str
    tool_name: str
    args: dict[str, Any] | None = None


class Progress(msgspec.Struct, gc=False, tag="tool_execution_update"):
    """Of a tool's output, which comes whole at its end."""


class Unusual(msgspec.Struct, gc=False, tag="message_end"):
    """Known, so that it is not refused with an error, which would take longer."""


Line: TypeAlias = Update | Begun | Called | Progress | Unusual
_decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)
decode_line = _decoder.decode
