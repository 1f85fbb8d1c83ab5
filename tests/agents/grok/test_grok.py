"""Grok Build, from its documentation: its own events, Claude Code's format, json and plain."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fuzz.damage import damaged, text_line, words_line
from hypothesis import given
from hypothesis import strategies as st

from agents.reading import texts
from ralph.agents.grok.adapter import GrokAdapter
from ralph.judging.replay import replay
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
    decode,
    encode,
)

MARKER = "<promise>COMPLETE</promise>"
END = {
    "type": "end",
    "stopReason": "end_turn",
    "sessionId": "s-1",
    "requestId": "r-1",
    "num_turns": 2,
    "usage": {
        "input_tokens": 10,
        "cache_read_input_tokens": 3,
        "cache_creation_input_tokens": 0,
        "output_tokens": 5,
        "reasoning_tokens": 2,
        "total_tokens": 18,
    },
    "modelUsage": {"grok-4.7": {"inputTokens": 10, "outputTokens": 5}},
    "total_cost_usd": 0.01,
}
CALL = {
    "type": "tool_call",
    "toolCallId": "c1",
    "title": "Execute `ls`",
    "kind": "execute",
    "status": "pending",
    "toolName": "run_terminal_command",
    "rawInput": {"command": "ls"},
}
INIT = {"type": "system", "subtype": "init", "session_id": "s-1", "model": "grok-4.7", "tools": []}
RESULT = {"type": "result", "subtype": "success", "is_error": False, "result": "", "session_id": "s-1"}


def word(text: Any) -> dict[str, Any]:
    return {"type": "text", "data": text}


def update(status: str = "completed", **more: Any) -> dict[str, Any]:
    return {"type": "tool_call_update", "toolCallId": "c1", "status": status, **more}


def said(*blocks: Any) -> dict[str, Any]:
    return {
        "type": "assistant",
        "message": {"id": "m", "role": "assistant", "content": list(blocks)},
        "session_id": "s-1",
    }


def returned(content: Any, *, is_error: bool = False) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": "c1", "content": content, "is_error": is_error}
    return {"type": "user", "message": {"role": "user", "content": [block]}, "session_id": "s-1"}


USE = said({"type": "tool_use", "id": "c1", "name": "run_terminal_command", "input": {"command": "ls"}})
#: One line of each kind.
LINES = [
    json.dumps(line, separators=(",", ":"))
    for line in (
        {"type": "available_commands", "tools": [], "commands": []},
        {"type": "thought", "data": "Hm."},
        word("Hello."),
        CALL,
        update("in_progress"),
        update(content=[{"type": "content", "content": {"type": "text", "text": "out"}}], rawOutput={"exit_code": 0}),
        {
            "type": "usage",
            "stopReason": "tool_use",
            "messageId": "m1",
            "usage": {"input_tokens": 1, "output_tokens": 2},
        },
        END,
        {"type": "error", "message": "no"},
        INIT,
        USE,
        returned('{"output": "x", "exit_code": 0}'),
        RESULT,
        {"text": "Hello.", "stopReason": "end_turn", "sessionId": "s-1", "thought": "Hm."},
    )
]


def events(*lines: Any, stderr: str = "") -> list[TranscriptEvent]:
    adapter = GrokAdapter()
    found = [e for line in stderr.splitlines() for e in adapter.feed_stderr(line)]
    for line in lines:
        text = line if isinstance(line, str) else json.dumps(line, ensure_ascii=False, separators=(",", ":"))
        found += adapter.feed(text)
    return found + adapter.flush()


def verdict(*lines: Any, stderr: str = "", code: int = 0) -> dict[str, Any]:
    texts = (line if isinstance(line, str) else json.dumps(line, separators=(",", ":")) for line in lines)
    out = "".join(text + "\n" for text in texts)
    *_, (last, _) = replay(out.encode(), stderr.encode(), "grok", code, None, None)
    assert isinstance(last[0], Meta)
    return last[0].meta


def ends(found: list[TranscriptEvent]) -> list[ToolStatus]:
    return [e.tool.status for e in found if isinstance(e, ToolEnd)]


def output(found: list[TranscriptEvent]) -> list[str]:
    return [e.text for e in found if isinstance(e, ToolOutput)]


# -- its own events


def test_a_whole_run() -> None:
    lines = [
        {"type": "available_commands", "commands": []},
        {"type": "thought", "data": "Let me "},
        {"type": "thought", "data": "look."},
        word("I'll list "),
        word("the files."),
        CALL,
        update("in_progress"),
        update(rawOutput={"output": [120, 10], "output_for_prompt": "x\n", "exit_code": 0}),
        *(word(c) for c in f"Done.\n\n{MARKER}\n"),
        END,
    ]
    found = events(*lines)
    assert texts(found, Tag.THINK) == ["Let me look."]
    assert "I'll list the files." in texts(found)
    assert [(e.tool.id, e.tool.name) for e in found if isinstance(e, ToolStart)] == [("c1", "run_terminal_command")]
    assert (ends(found), output(found)) == ([ToolStatus.OK], ["x\n"])
    seen = verdict(*lines)
    assert (seen["outcome"], seen["completed"], seen["session_id"]) == ("ok", True, "s-1")
    assert seen["usage"] == {
        "prompt_tokens": 13,
        "completion_tokens": 5,
        "total_tokens": 18,
        "model": "grok-4.7",
        "cached_tokens": 3,
        "cache_write_tokens": 0,
        "reasoning_tokens": 2,
        "cost_usd": 0.01,
    }


@pytest.mark.parametrize(
    ("raw", "status", "shown"),
    [
        ({"output_for_prompt": "no\n", "exit_code": 3}, ToolStatus.FAIL, ["no\n"]),
        ({"output": [110, 111, 255], "exit_code": 0}, ToolStatus.OK, ["no\ufffd"]),
        ({"Bash": {"output": "deep", "exit_code": 1}}, ToolStatus.FAIL, ["deep"]),
        ({}, ToolStatus.OK, []),
        (None, ToolStatus.OK, []),
        ({"output": [300, "x"]}, ToolStatus.OK, []),
    ],
)
def test_the_exit_code_of_a_command_decides_its_status(raw: Any, status: ToolStatus, shown: list[str]) -> None:
    found = events(CALL, update(rawOutput=raw), update(rawOutput=raw), word("x"), END)
    assert (ends(found), output(found)) == ([status], shown)


def test_the_counts_of_single_calls_are_used_only_without_a_sum() -> None:
    calls = [{"type": "usage", "messageId": m, "usage": {"input_tokens": 1, "output_tokens": 2}} for m in "ab"]
    assert verdict(word("x"), *calls, END)["usage"]["prompt_tokens"] == 13
    bare = {"type": "end", "stopReason": "EndTurn", "sessionId": "s"}
    assert verdict(word("x"), *calls, bare)["usage"]["completion_tokens"] == 4


def test_older_releases_end_without_counts() -> None:
    found = events(word(MARKER), {"type": "end", "stopReason": "EndTurn", "sessionId": "s"})
    assert not [e for e in found if isinstance(e, UsageEvent)]
    assert verdict(word(MARKER), {"type": "end", "stopReason": "EndTurn", "sessionId": "s"})["completed"]


@pytest.mark.parametrize("reason", ["max_turn_requests", "Cancelled", "refusal"])
def test_an_end_for_another_reason_is_a_failure(reason: str) -> None:
    assert verdict(word(MARKER), {**END, "stopReason": reason})["outcome"] == "failed"


def test_no_end_is_a_failure_even_with_exit_code_0() -> None:
    assert verdict(word(MARKER + "\n"))["outcome"] == "failed"
    assert verdict(word(MARKER), json.dumps(END)[:30])["outcome"] == "failed"


@pytest.mark.parametrize(
    ("message", "outcome"),
    [
        ('Internal error: {\n "message": "API error (status 401 Unauthorized): no"}', "auth"),
        ("API error (status 429 Too Many Requests): try again in 2s", "rate_limited"),
        ("API error (status 503 Service Unavailable)", "overloaded"),
        ("This model's maximum context length is 128000 tokens.", "context_exceeded"),
        ("Session not found", "failed"),
    ],
)
def test_an_error_is_classified_in_every_format(message: str, outcome: str) -> None:
    error = {"type": "error", "message": message}
    stderr = f"Error: {message}\n"
    assert verdict(word(MARKER), error, stderr=stderr, code=1)["outcome"] == outcome
    assert verdict(error, code=1)["outcome"] == outcome
    assert verdict(json.dumps(error, indent=2), code=1)["outcome"] == outcome
    if "\n" not in message:
        assert verdict(stderr=stderr, code=1)["outcome"] == outcome


def test_a_tool_that_was_not_executed_is_a_denial() -> None:
    text = "Tool `run_terminal_command` was not executed: Denied by permission policy"
    refused = update(content=[{"type": "content", "content": {"type": "text", "text": text}}])
    assert verdict(CALL, refused, word(MARKER), END)["outcome"] == "permission_denied"
    printed = update(rawOutput={"output_for_prompt": text, "exit_code": 0})
    assert verdict(CALL, printed, word(MARKER), END)["completed"]


# -- Claude Code's format


def test_the_streaming_messages_format() -> None:
    lines = [
        INIT,
        USE,
        returned('{"output": "some-out", "exit_code": 3}'),
        said({"type": "text", "text": f"Done.\n{MARKER}"}),
    ]
    found = events(*lines, {**RESULT, "result": f"Done.\n{MARKER}"})
    assert (ends(found), output(found)) == ([ToolStatus.FAIL], ["some-out"])
    assert texts(found) == [f"Done.\n{MARKER}"]
    assert verdict(*lines, RESULT)["completed"]
    assert verdict(*lines)["outcome"] == "failed"
    stopped = {**RESULT, "subtype": "error_max_turns", "is_error": True, "errors": ["max turns"]}
    assert verdict(*lines, stopped, code=1)["outcome"] == "failed"


def test_a_cancelled_tool_is_a_denial_in_the_streaming_messages_format() -> None:
    text = "User cancelled the execution for tool run_terminal_command"
    content = json.dumps([{"type": "content", "content": {"type": "text", "text": text}}])
    result = {**RESULT, "subtype": "error_during_execution", "is_error": True, "errors": ["cancelled"]}
    assert verdict(INIT, USE, returned(content, is_error=True), result, code=1)["outcome"] == "permission_denied"


# -- json and plain


def test_the_json_format() -> None:
    answer = {**END, "text": f"Done.\n\n{MARKER}\n", "thought": "Hm."}
    del answer["type"]
    for lines in ([json.dumps(answer)], json.dumps(answer, indent=2).split("\n")):
        seen = verdict(*lines)
        assert (seen["completed"], seen["session_id"], seen["usage"]["prompt_tokens"]) == (True, "s-1", 13)
    assert texts(events(answer), Tag.THINK) == ["Hm."]


def test_plain_output_is_the_agents_words() -> None:
    lines = ["I'll look.Done.", '{"text": "no answer"}', "", MARKER]
    assert texts(events(*lines)) == lines
    assert verdict(*lines)["completed"]


def test_escape_sequences_do_not_prevent_completion() -> None:
    lines = ["\x1b[?25l" + json.dumps(word(MARKER)) + "\r", json.dumps(END) + "\r\x1b[?25h"]
    assert verdict(*lines)["completed"]


def test_unknown_types_are_kept_whole() -> None:
    new = {"type": "checkpoint", "id": 5}
    found = events(word("a"), new, END)
    assert [e.meta["line"] for e in found if isinstance(e, Meta) and e.meta["kind"] == "unknown"] == [new]


@given(st.lists(damaged(LINES) | text_line(), max_size=12))
def test_nothing_raises_and_every_event_can_be_written(lines: list[str]) -> None:
    for event in events(*lines, stderr="\n".join(lines)):
        decode(encode(event))


@given(st.lists(words_line(), min_size=1, max_size=10), st.booleans())
def test_no_line_of_text_is_lost(lines: list[str], structured: bool) -> None:
    found = events(*([word("")] if structured else []), *lines)
    assert [e.text for e in found if isinstance(e, Text)] == lines
