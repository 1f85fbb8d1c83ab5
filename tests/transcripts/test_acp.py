"""The Agent Client Protocol: whole conversations, refusals, and messages that the protocol does not define."""

from __future__ import annotations

from typing import Any

import pytest

from ralph.transcripts.acp import AcpReader, is_rpc
from ralph.transcripts.events import (
    Meta,
    Tag,
    Text,
    ToolEnd,
    ToolOutput,
    ToolStart,
    ToolStatus,
    TranscriptEvent,
    UsageEvent,
)

HELLO = {"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 1, "agentInfo": {"name": "a", "version": "1"}}}
SESSION = {"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s-1"}}


def update(kind: str, /, **fields: Any) -> dict[str, Any]:
    params = {"sessionId": "s-1", "update": {"sessionUpdate": kind, **fields}}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


def chunk(kind: str, text: str) -> dict[str, Any]:
    return update(f"agent_{kind}_chunk", content={"type": "text", "text": text})


def end(reason: str = "end_turn") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 2, "result": {"stopReason": reason}}


def error(message: str, code: int = -32603, data: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": message, "data": data}}


def events(*values: dict[str, Any]) -> list[TranscriptEvent]:
    reader = AcpReader()
    assert all(is_rpc(value) for value in values)
    return [event for value in values for event in reader.feed(value)] + reader.flush()


def metas(*values: dict[str, Any]) -> list[dict[str, Any]]:
    return [e.meta for e in events(*values) if isinstance(e, Meta)]


def test_a_whole_conversation() -> None:
    output = [{"type": "content", "content": {"type": "text", "text": "README.md"}}]
    found = events(
        HELLO,
        SESSION,
        chunk("thought", "Let me "),
        chunk("thought", "look."),
        chunk("message", "I'll list"),
        chunk("message", " the files."),
        update("tool_call", toolCallId="c", title="ls", kind="execute", status="pending", rawInput={"command": "ls"}),
        update("tool_call_update", toolCallId="c", status="in_progress", content=output),
        update("tool_call_update", toolCallId="c", status="completed", content=output),
        update("usage_update", used=9, size=99, cost={"amount": 0.25, "currency": "USD"}),
        update("usage_update", used=19, size=99, cost={"amount": 0.75, "currency": "USD"}),
        update("available_commands_update", availableCommands=[]),
        chunk("message", "Done.\n<promise>COMP"),
        chunk("message", "LETE</promise>"),
        end(),
    )
    assert [(e.tag, e.text) for e in found if isinstance(e, Text)] == [
        (Tag.THINK, "Let me look."),
        (Tag.AI, "I'll list the files."),
        (Tag.AI, "Done."),
        (Tag.AI, "<promise>COMPLETE</promise>"),
    ]
    assert [e.tool.input for e in found if isinstance(e, ToolStart)] == [{"command": "ls"}]
    assert [e.text for e in found if isinstance(e, ToolOutput)] == ["README.md"]
    assert [e.tool.status for e in found if isinstance(e, ToolEnd)] == [ToolStatus.OK]
    assert sum(e.usage.cost_usd or 0 for e in found if isinstance(e, UsageEvent)) == 0.75
    assert [e.meta for e in found if isinstance(e, Meta)] == [
        {"kind": "session", "session_id": "s-1"},
        {"kind": "result", "ok": True, "reason": "end_turn"},
    ]


def test_a_failed_call_shows_its_raw_output() -> None:
    found = events(
        update("tool_call", toolCallId="c", title="ls"),
        update("tool_call_update", toolCallId="c", status="failed", rawOutput={"code": 3}),
        update("tool_call_update", toolCallId="c", status="failed"),
    )
    assert [e.text for e in found if isinstance(e, ToolOutput)] == ['{"code":3}']
    assert [e.tool.status for e in found if isinstance(e, ToolEnd)] == [ToolStatus.FAIL]


@pytest.mark.parametrize("reason", ["max_tokens", "max_turn_requests", "refusal", "cancelled"])
def test_any_stop_reason_but_end_turn_is_a_failure(reason: str) -> None:
    assert [m["ok"] for m in metas(end(reason)) if m["kind"] == "result"] == [False]


def test_a_missing_response_is_a_failure() -> None:
    assert [m["kind"] for m in metas(HELLO, SESSION, chunk("message", "Hm."))] == ["session", "error"]


def test_errors_are_classified() -> None:
    (found,) = metas(error("Authentication required", -32000))
    assert found["class"] == "auth"
    (found,) = metas(error("Internal error", data="429 Too Many Requests"))
    assert (found["class"], found["message"]) == ("rate_limited", "Internal error: 429 Too Many Requests")


def test_unknown_messages_are_reported_whole_and_unexpected_types_cost_one_field() -> None:
    new = update("something_new", x=1)
    method = {"jsonrpc": "2.0", "id": 5, "method": "fs/read_text_file", "params": []}
    unknown = [m["line"] for m in metas(new, method) if m["kind"] == "unknown"]
    assert unknown == [new, method]
    strange = [update("tool_call"), update("agent_message_chunk", content=[1]), {"jsonrpc": "2.0", "error": "no"}]
    assert [m["kind"] for m in metas(*strange)] == ["unknown", "error"]


def test_a_tool_call_keeps_the_fields_that_have_the_right_type() -> None:
    found = events(
        update("tool_call", toolCallId="c", title=["ls"], kind="execute", rawInput=[1], status={}),
        update("tool_call_update", toolCallId="c", status="completed", content=[5, {"content": {"text": "x"}}]),
        update("usage_update", cost={"amount": "much", "currency": "USD"}),
    )
    assert [(e.tool.name, e.tool.input) for e in found if isinstance(e, ToolStart)] == [("execute", None)]
    assert [e.text for e in found if isinstance(e, ToolOutput)] == ["x"]
    assert not any(isinstance(e, UsageEvent) for e in found)


def test_a_permission_request_is_shown() -> None:
    params = {"sessionId": "s-1", "toolCall": {"toolCallId": "c", "title": "rm -rf build"}, "options": []}
    asked = events({"jsonrpc": "2.0", "id": 0, "method": "session/request_permission", "params": params}, end())
    assert [e.text for e in asked if isinstance(e, Text)] == ["asks for permission: rm -rf build"]
