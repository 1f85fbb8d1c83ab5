"""What recordings of Amp do not show."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))


from fuzz.damage import damaged, recorded

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
def test_a_commands_exit_code_is_in_the_json_of_its_result(
    content: str, is_error: bool, wanted: dict[str, int]
) -> None:
    seen = verdict(INIT, *shell(content, is_error=is_error), {"type": "result", "subtype": "success", "result": "ok"})
    assert seen["tools"] == wanted


def test_a_commands_output_is_shown_without_its_wrapping() -> None:
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


def test_max_turns_and_denials_are_no_success() -> None:
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


def test_an_error_on_stderr_is_history_if_the_run_went_well() -> None:
    good = {"type": "result", "subtype": "success", "is_error": False, "result": MARKER}
    seen = verdict(INIT, assistant(said(MARKER)), good, stderr="Error: could not update amp: 503\n")
    assert seen["completed"] is True


def test_stderr_that_only_mentions_an_error_decides_nothing() -> None:
    assert verdict("Done.", MARKER, stderr="tool said Error: 401 unauthorized\n")["completed"] is True


def test_the_prompts_echo_completes_nothing_and_thoughts_are_thoughts() -> None:
    echo = {"type": "user", "message": {"role": "user", "content": [said(f"Print {MARKER}\n{MARKER}")]}}
    thought = {"type": "thinking", "thinking": MARKER}
    good = {"type": "result", "subtype": "success", "is_error": False, "result": "Not yet."}
    seen = verdict(INIT, echo, assistant(thought, said("Not yet.")), good)
    assert (seen["outcome"], seen["completed"]) == ("ok", False)


def test_messages_are_summed_where_the_result_has_no_usage() -> None:
    one = {"input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 5, "output_tokens": 3}
    first, second = assistant(said("a"), **one), assistant(said("b"), **one)
    first["message"]["id"], second["message"]["id"] = "m1", "m2"
    seen = verdict(INIT, first, second, {"type": "result", "subtype": "success", "result": "b"})["usage"]
    assert (seen["prompt_tokens"], seen["completion_tokens"], seen["cached_tokens"]) == (230, 6, 200)


def test_a_stream_that_was_cut_is_not_ok() -> None:
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


def test_the_last_message_printed_twice_is_said_and_counted_once() -> None:
    """Seen of the release of March 2026, now and then."""
    usage = {"input_tokens": 270, "cache_read_input_tokens": 1280, "output_tokens": 57}
    body = {"role": "assistant", "content": [{"type": "text", "text": MARKER}], "usage": usage}
    line = {"type": "assistant", "message": body, "session_id": "T-1"}
    end = {"type": "result", "subtype": "success", "is_error": False, "result": MARKER, "session_id": "T-1"}
    seen = verdict(INIT, line, line, end)
    assert seen["completed"]
    assert (seen["usage"]["prompt_tokens"], seen["usage"]["completion_tokens"]) == (1550, 57)
    asked = {"type": "user", "message": {"content": [{"type": "text", "text": "Go on."}]}, "session_id": "T-1"}
    assert verdict(INIT, line, asked, line, end)["usage"]["completion_tokens"] == 114
