"""Copilot's lines as types: of words and tools, only the fields that are read, absent or of any type.

Most lines are fragments and noise, and the others tell much twice: what is not read is not decoded.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Data(msgspec.Struct, gc=False, rename="camel"):
    message_id: Any = None
    reasoning_id: Any = None
    delta_content: Any = None
    content: Any = None
    reasoning_text: Any = None
    output_tokens: Any = None
    tool_call_id: Any = None
    tool_name: Any = None
    arguments: Any = None
    text: Any = None
    success: Any = None
    error: Any = None
    result: Any = None
    shell_execution: Any = None
    parent_tool_call_id: Any = None


class Line(msgspec.Struct, gc=False, rename="camel"):
    type: str
    data: Data
    timestamp: Any = None
    agent_id: Any = None

    @property
    def agent(self) -> str:
        """Empty for the agent itself, else which of its subagents."""
        found = self.agent_id or self.data.parent_tool_call_id
        return "" if not found else found if type(found) is str else "another"


decode_line = msgspec.json.Decoder(Line).decode


def lenient(value: dict[str, Any]) -> Line | None:
    """The same of an object; None if it has no type."""
    kind, data = value.get("type"), value.get("data")
    if not isinstance(kind, str):
        return None
    known = msgspec.convert(data, Data) if isinstance(data, dict) else Data()
    return Line(kind, known, value.get("timestamp"), value.get("agentId"))


def string(value: Any) -> str:
    return value if type(value) is str else ""
