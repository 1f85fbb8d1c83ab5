"""Amp, beyond the recordings."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fuzz.damage import damaged, recorded
from hypothesis import given
from hypothesis import strategies as st

from ralph.agents.amp.adapter import AmpAdapter
from ralph.judging.replay import replay
from ralph.transcripts.events import Meta, Tag, Text, ToolOutput, decode, encode

MARKER = "<promise>COMPLETE</promise>"
INIT = {"type": "system", "subtype": "init", "session_id": "T-1", "tools": [], "mcp_servers": []}


def verdict(*lines: Any, stderr: str = "", exit_code: int = 0) -> dict[str, Any]:
    data = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines).encode()
    *_, (last, _) = replay(data, stderr.encode(), "amp", exit_code, None, None)
    assert isinstance(last[0], Meta)
    return last[0].meta


def assistant(*blocks: dict[str, Any], **usage: int) -> dict[str, Any]:
    message = {"id": f"m{id(blocks)}", "model": "claude-x", "content": list(blocks), "usage": usage or None}
    return {"type": "assistant", "message": message, "parent_tool_use_id": None, "session_id": "T-1"}


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def shell(content: str, *, is_error: bool = False) -> list[dict[str, Any]]:
    block = {"type": "tool_result", "tool_use_id": "t1", "content": content, "is_error": is_error}
    return [
        assistant({"type": "tool_use", "id": "t1", "name": "Bash", "input": {"cmd": "make"}}),
        {"type": "user", "message": {"role": "user", "content": [block]}, "session_id": "T-1"},
    ]


@pytest.mark.parametrize(
    ("content", "is_error", "wanted"),
    [
        ('{"output":"boom\\n","exitCode":2}', False, {"started": 1, "ok": 0, "fail": 1, "unknown": 0}),
        ('{"output":"fine\\n","exitCode":0}', False, {"started": 1, "ok": 1, "fail": 0, "unknown": 0}),
        ("no such tool", True, {"started": 1, "ok": 0, "fail": 1, "unknown": 0}),
        ('{"exitCode":', False, {"started": 1, "ok": 1, "fail": 0, "unknown": 0}),
    ],
)
def test_the_exit_code_of_a_command_decides_its_status(content: str, is_error: bool, wanted: dict[str, int]) -> None:
    seen = verdict(INIT, *shell(content, is_error=is_error), {"type": "result", "subtype": "success", "result": "ok"})
    assert seen["tools"] == wanted


def test_the_output_of_a_command_is_unwrapped() -> None:
    adapter = AmpAdapter()
    events = [e for line in shell('{"output":"boom\\n","exitCode":2}') for e in adapter.feed(json.dumps(line))]
    assert [e.text for e in events if isinstance(e, ToolOutput)] == ["boom\n"]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        ("Invalid or missing API key. Run 'amp login' to authenticate.", "auth"),
        ("Out of credits", "quota"),
        ("the prompt is too long for the context window", "context_exceeded"),
        ("something else", "failed"),
    ],
)
def test_a_failed_result_has_its_reason_in_error(error: str, outcome: str) -> None:
    for subtype in ("error_during_execution", "error"):
        wrong = {"type": "result", "subtype": subtype, "is_error": True, "error": error, "session_id": "T-1"}
        seen = verdict(INIT, wrong, exit_code=1)
        assert (seen["outcome"], seen["why"]) == (outcome, error)


def test_max_turns_and_denials_are_failures() -> None:
    turns = {"type": "result", "subtype": "error_max_turns", "is_error": True, "error": "too many turns"}
    assert verdict(INIT, assistant(said(MARKER)), turns, exit_code=1)["outcome"] == "failed"
    denied = {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "result": MARKER,
        "permission_denials": ["Bash"],
    }
    seen = verdict(INIT, assistant(said(MARKER)), denied)
    assert (seen["outcome"], seen["why"]) == ("permission_denied", "refused: Bash")


def test_an_error_on_stderr_does_not_spoil_a_good_result() -> None:
    good = {"type": "result", "subtype": "success", "is_error": False, "result": MARKER}
    seen = verdict(INIT, assistant(said(MARKER)), good, stderr="Error: could not update amp: 503\n")
    assert seen["completed"] is True


def test_stderr_that_only_mentions_an_error_is_ignored() -> None:
    assert verdict("Done.", MARKER, stderr="tool said Error: 401 unauthorized\n")["completed"] is True


def test_an_echoed_prompt_and_thoughts_do_not_complete_the_run() -> None:
    echo = {"type": "user", "message": {"role": "user", "content": [said(f"Print {MARKER}\n{MARKER}")]}}
    thought = {"type": "thinking", "thinking": MARKER}
    good = {"type": "result", "subtype": "success", "is_error": False, "result": "Not yet."}
    seen = verdict(INIT, echo, assistant(thought, said("Not yet.")), good)
    assert (seen["outcome"], seen["completed"]) == ("ok", False)


def test_messages_are_added_up_if_the_result_has_no_usage() -> None:
    one = {"input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 5, "output_tokens": 3}
    first, second = assistant(said("a"), **one), assistant(said("b"), **one)
    first["message"]["id"], second["message"]["id"] = "m1", "m2"
    seen = verdict(INIT, first, second, {"type": "result", "subtype": "success", "result": "b"})["usage"]
    assert (seen["prompt_tokens"], seen["completion_tokens"], seen["cached_tokens"]) == (230, 6, 200)


def test_output_without_a_result_is_a_failure() -> None:
    assert verdict(INIT, assistant(said(MARKER)))["outcome"] == "failed"


@given(st.lists(damaged(recorded("amp")), min_size=1, max_size=6))
def test_lines_of_other_releases_never_raise(lines: list[str]) -> None:
    adapter = AmpAdapter()
    for event in [e for line in lines for e in adapter.feed(line) + adapter.feed_stderr(line)] + adapter.flush():
        decode(encode(event))


@given(st.lists(st.text(st.characters(exclude_characters="\n\x1b\r"), min_size=1).filter(lambda s: s[0] not in "{[")))
def test_no_line_of_text_is_lost(lines: list[str]) -> None:
    adapter = AmpAdapter()
    assert [adapter.feed(line)[0] for line in lines] == [Text(Tag.AI, line) for line in lines]


def test_a_message_that_is_printed_twice_is_shown_and_counted_once() -> None:
    """The release of March 2026 does this occasionally."""
    usage = {"input_tokens": 270, "cache_read_input_tokens": 1280, "output_tokens": 57}
    body = {"role": "assistant", "content": [{"type": "text", "text": MARKER}], "usage": usage}
    line = {"type": "assistant", "message": body, "session_id": "T-1"}
    end = {"type": "result", "subtype": "success", "is_error": False, "result": MARKER, "session_id": "T-1"}
    seen = verdict(INIT, line, line, end)
    assert seen["completed"]
    assert (seen["usage"]["prompt_tokens"], seen["usage"]["completion_tokens"]) == (1550, 57)
    asked = {"type": "user", "message": {"content": [{"type": "text", "text": "Go on."}]}, "session_id": "T-1"}
    assert verdict(INIT, line, asked, line, end)["usage"]["completion_tokens"] == 114


@pytest.mark.parametrize("name", [None, "m1"])
def test_a_copy_is_recognised_whatever_blocks_it_has(name: str | None) -> None:
    """A `redacted_thinking` block once made the copy count twice."""
    usage = {"input_tokens": 270, "output_tokens": 57}
    blocks = [{"type": "redacted_thinking", "data": "x"}, said(MARKER), {"type": "new block"}]
    line = {"type": "assistant", "message": {"id": name, "content": blocks, "usage": usage}, "session_id": "T-1"}
    end = {"type": "result", "subtype": "success", "is_error": False, "result": MARKER}
    seen = verdict(INIT, line, line, end)
    assert (seen["usage"]["prompt_tokens"], seen["usage"]["completion_tokens"]) == (270, 57)
    adapter = AmpAdapter()
    events = [e for one in (INIT, line, line, end) for e in adapter.feed(json.dumps(one))]
    assert [e.text for e in events if isinstance(e, Text)] == [MARKER]


def test_messages_without_an_id_count_separately() -> None:
    usage = {"input_tokens": 270, "output_tokens": 57}
    lines = [
        {"type": "assistant", "message": {"content": [said(text)], "usage": usage}, "session_id": "T-1"}
        for text in ("One.", "Two.")
    ]
    end = {"type": "result", "subtype": "success", "is_error": False, "result": "Two."}
    assert verdict(INIT, *lines, end)["usage"]["completion_tokens"] == 114


def test_the_wait_for_a_rate_limit_is_read_from_the_error_of_a_result() -> None:
    error = "429 Too Many Requests, please try again in 30 seconds"
    wrong = {"type": "result", "subtype": "error_during_execution", "is_error": True, "error": error}
    seen = verdict(INIT, wrong, exit_code=1)
    assert (seen["outcome"], seen["retry_after"]) == ("rate_limited", 30)
