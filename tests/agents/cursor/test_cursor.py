"""Cursor, beyond the recordings: repeated words, kinds of tools, errors."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fuzz.damage import damaged, recorded
from hypothesis import given
from hypothesis import strategies as st

from ralph.agents.cursor.adapter import CursorAdapter
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
INIT = {"type": "system", "subtype": "init", "session_id": "s", "model": "Auto", "permissionMode": "default"}


def run(*lines: Any) -> list[TranscriptEvent]:
    adapter = CursorAdapter()
    events = [e for line in lines for e in adapter.feed(line if isinstance(line, str) else json.dumps(line))]
    return events + adapter.flush()


def verdict(*lines: Any, stderr: str = "", exit_code: int = 0) -> dict[str, Any]:
    data = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines).encode()
    *_, (last, _) = replay(data, stderr.encode(), "cursor", exit_code, None, None)
    assert isinstance(last[0], Meta)
    return last[0].meta


def texts(events: list[TranscriptEvent], tag: Tag = Tag.AI) -> list[str]:
    return [e.text for e in events if isinstance(e, Text) and e.tag is tag]


def assistant(text: str, **fields: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {"type": "assistant", "message": {"role": "assistant", "content": content}, "session_id": "s", **fields}


def partial(text: str) -> dict[str, Any]:
    return assistant(text, timestamp_ms=1)


def copy(text: str) -> dict[str, Any]:
    return assistant(text, timestamp_ms=2, model_call_id="m")


def call(subtype: str, kind: str = "shellToolCall", **body: Any) -> dict[str, Any]:
    return {
        "type": "tool_call",
        "subtype": subtype,
        "call_id": "c1\nfc_2",
        "tool_call": {kind: body},
        "session_id": "s",
    }


def result(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": False, "result": text, "session_id": "s", **fields}


def test_partial_output_of_two_segments_is_shown_once() -> None:
    events = run(
        INIT,
        partial("Look"),
        partial("ing.\n"),
        copy("Looking.\n"),
        call("started", args={"command": "ls"}),
        call("completed", args={"command": "ls"}, result={"success": {"exitCode": 0, "stdout": "a\n", "stderr": ""}}),
        partial("Done.\n<promise>COM"),
        partial("PLETE</promise>"),
        assistant(f"Done.\n{MARKER}"),
        result(f"Looking.\nDone.\n{MARKER}"),
    )
    assert texts(events) == ["Looking.", "Done.", MARKER]


def test_a_final_copy_of_all_segments_is_not_shown_again() -> None:
    events = run(partial("One."), copy("One."), partial("Two."), assistant("One.Two."), result("One.Two."))
    assert texts(events) == ["One.", "Two."]


def test_a_message_before_a_tool_call_is_not_a_copy() -> None:
    """Without partial output, it has `model_call_id` and `timestamp_ms` as well."""
    assert texts(run(INIT, copy("First."), copy("First."), assistant("Last."), result("First.First.Last."))) == [
        "First.",
        "First.",
        "Last.",
    ]


def test_a_result_that_joins_all_messages_is_not_shown_again() -> None:
    lines = [assistant("I will print it."), assistant(MARKER), result(f"I will print it.{MARKER}")]
    assert texts(run(*lines)) == ["I will print it.", MARKER]
    assert verdict(*lines)["completed"] is True


def test_the_result_of_a_very_long_run_is_not_shown_again() -> None:
    """Only the latest words are kept; they suffice to recognise the result as a copy."""
    messages = [f"{number} {'x' * 50_000}." for number in range(40)]
    events = run(*(assistant(text) for text in messages), result("".join(messages)))
    assert texts(events) == messages


@pytest.mark.parametrize(
    ("outcome", "status", "output"),
    [
        ({"success": {"exitCode": 0, "stdout": "out\n", "stderr": "err\n"}}, ToolStatus.OK, "out\nerr\n"),
        ({"success": {"exitCode": 3, "stdout": "", "stderr": "bad\n"}}, ToolStatus.FAIL, "bad\n"),
        ({"success": {"content": "text of a file"}, "isBackground": False}, ToolStatus.OK, "text of a file"),
        ({"failure": {"exitCode": 1, "stdout": "x", "stderr": ""}}, ToolStatus.FAIL, "x"),
        ({"spawnError": {"command": "", "error": "spawn /bin/zsh ENOENT"}}, ToolStatus.FAIL, "spawn /bin/zsh ENOENT"),
        ({"error": {"errorMessage": "File not found"}}, ToolStatus.FAIL, "File not found"),
        (None, ToolStatus.UNKNOWN, ""),
    ],
)
def test_the_status_and_output_of_a_tool(outcome: Any, status: ToolStatus, output: str) -> None:
    events = run(call("started", args={"command": "x"}), call("completed", result=outcome), result("ok"))
    assert [e.tool.status for e in events if isinstance(e, ToolEnd)] == [status]
    assert "".join(e.text for e in events if isinstance(e, ToolOutput)) == output


def test_tools_of_any_kind_have_their_name_and_input() -> None:
    function = {"function": {"name": "todo", "arguments": '{"items": 2}'}}
    events = run(
        call("completed", "grepToolCall", args={"pattern": "x"}, result={"success": {"matches": 1}}),
        {"type": "tool_call", "subtype": "started", "call_id": "c2", "tool_call": function},
        {"type": "tool_call", "subtype": "started", "call_id": "c3", "tool_call": {}},
    )
    starts = [e.tool for e in events if isinstance(e, ToolStart)]
    assert [(t.name, t.input) for t in starts] == [("grep", {"pattern": "x"}), ("todo", {"items": 2}), ("tool", None)]


def test_the_duration_of_a_tool_is_reported() -> None:
    done = call("completed", result={"success": {"exitCode": 0, "stdout": "", "executionTime": 1250}})
    assert [e.tool.duration_ms for e in run(done) if isinstance(e, ToolEnd)] == [1250]


def test_a_refused_tool_is_a_denial_even_in_a_successful_run() -> None:
    refused = call("completed", result={"rejected": {"command": "make", "reason": ""}})
    seen = verdict(INIT, call("started", args={"command": "make"}), refused, assistant(MARKER), result(MARKER))
    assert (seen["outcome"], seen["completed"], seen["why"]) == ("permission_denied", False, "refused: make")


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        ("Error: Authentication required. Run 'agent login', or set CURSOR_API_KEY.", "auth"),
        ("ConnectError: [unauthenticated] Error", "auth"),
        ("ActionRequiredError: You've hit your usage limit", "quota"),
        ("S: [resource_exhausted] Error", "rate_limited"),
        ("Cannot use this model: gpt-401-login. Available models: auto", "failed"),
        ("Error: [unavailable] 503 service unavailable", "overloaded"),
    ],
)
def test_the_reason_for_a_failed_run_is_read_from_stderr(line: str, outcome: str) -> None:
    assert verdict(stderr=line + "\n", exit_code=1)["outcome"] == outcome
    assert verdict(INIT, assistant("Hm."), stderr=line + "\n", exit_code=1)["session_id"] == "s"


def test_other_lines_on_stderr_are_ignored() -> None:
    seen = verdict(INIT, assistant(MARKER), result(MARKER), stderr="warning: 401 unauthorized\n")
    assert seen["completed"] is True


def test_an_echoed_prompt_and_thoughts_do_not_complete_the_run() -> None:
    echo = {"type": "user", "message": {"content": [{"type": "text", "text": MARKER}]}, "session_id": "s"}
    thought = {"type": "thinking", "subtype": "delta", "text": f"{MARKER}\n", "timestamp_ms": 1}
    done = {"type": "thinking", "subtype": "completed", "timestamp_ms": 2}
    lines = [INIT, echo, thought, done, assistant("Not yet."), result("Not yet.")]
    assert verdict(*lines)["completed"] is False
    assert (texts(run(*lines), Tag.PROMPT), texts(run(*lines), Tag.THINK)) == ([MARKER], [MARKER])


def test_output_without_a_result_is_a_failure() -> None:
    assert verdict(INIT, assistant(MARKER))["outcome"] == "failed"
    assert verdict(INIT, assistant(MARKER), exit_code=-9)["outcome"] == "crashed"


def test_a_failed_result_is_classified() -> None:
    wrong = result("429 Too Many Requests, please try again in 30 seconds", is_error=True, subtype="error")
    seen = verdict(INIT, wrong)
    assert (seen["outcome"], seen["retry_after"]) == ("rate_limited", 30)


def test_text_output_is_the_agents_words() -> None:
    assert verdict("Done.", MARKER)["completed"] is True
    assert verdict('{"type": "module"}', MARKER)["completed"] is True


@given(st.lists(damaged(recorded("cursor-agent")), min_size=1, max_size=6))
def test_lines_of_other_releases_never_raise(lines: list[str]) -> None:
    adapter = CursorAdapter()
    for event in [e for line in lines for e in adapter.feed(line) + adapter.feed_stderr(line)] + adapter.flush():
        decode(encode(event))


@given(st.lists(st.text(st.characters(exclude_characters="\n\x1b\r"), min_size=1).filter(lambda s: s[0] not in "{[")))
def test_no_line_of_text_is_lost(lines: list[str]) -> None:
    assert texts(run(*lines)) == lines
    assert texts(run(INIT, *lines, result("")), Tag.SYS) == lines


def test_a_call_without_an_id_keeps_its_name_and_input() -> None:
    body = {"grepToolCall": {"args": {"pattern": "x"}, "result": {"success": {"content": "a match"}}}}
    events = run(INIT, {"type": "tool_call", "subtype": "completed", "tool_call": body}, result("ok"))
    assert [(e.tool.name, e.tool.input) for e in events if isinstance(e, ToolStart)] == [("grep", {"pattern": "x"})]
    assert [e.tool.status for e in events if isinstance(e, ToolEnd)] == [ToolStatus.OK]


def test_missing_or_odd_fields_cost_only_themselves() -> None:
    odd = {"shellToolCall": {"args": ["x"], "result": {"success": {"exitCode": "?", "stdout": 5, "stderr": "err"}}}}
    events = run(
        INIT,
        {"type": ["x"]},
        {"type": "assistant", "message": {"content": [None, 7, {"type": "text", "text": "Words."}]}},
        {"type": "tool_call", "subtype": 3, "call_id": 4, "tool_call": odd},
        {"type": "tool_call", "subtype": "completed", "call_id": "c", "tool_call": []},
        result("Words.", usage={"inputTokens": "many", "outputTokens": 4}, permission_denials={}),
    )
    assert texts(events) == ["Words."]
    assert [e.text for e in events if isinstance(e, ToolOutput)] == ["err"]
    assert [(e.tool.name, e.tool.status) for e in events if isinstance(e, ToolEnd)] == [
        ("shell", ToolStatus.OK),
        ("tool", ToolStatus.UNKNOWN),
    ]
    assert [(e.usage.prompt_tokens, e.usage.completion_tokens) for e in events if isinstance(e, UsageEvent)] == [
        (None, 4)
    ]
