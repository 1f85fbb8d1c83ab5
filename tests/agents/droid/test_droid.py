"""Droid, beyond the recordings: refusals, subagents, other releases, damaged lines."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fuzz.damage import damaged, recorded, text_line, words_line
from hypothesis import given
from hypothesis import strategies as st

from agents.reading import events_of, metas, texts, verdict_of
from ralph.judging.replay import replay
from ralph.transcripts.events import (
    Tag,
    Text,
    ToolEnd,
    ToolOutput,
    ToolStart,
    ToolStatus,
    UsageEvent,
    decode,
    encode,
)

events = partial(events_of, "droid")
verdict = partial(verdict_of, "droid")
SUCCESS = Path(__file__).parents[2] / "fixtures" / "droid" / "0.215.0" / "stream-json-success.jsonl"
REAL = recorded("droid")
MARKER = "<promise>COMPLETE</promise>"
INIT = {"type": "system", "subtype": "init", "session_id": "s", "model": "m", "tools": ["Execute"]}
GOOD = {"type": "completion", "finalText": "x", "numTurns": 1, "session_id": "s", "usage": {"output_tokens": 5}}
REFUSED = "Exec ended early: insufficient permission to proceed. Re-run with --auto medium or --auto high."


def word(text: Any, **more: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "id": "m-1", "text": text, "session_id": "s", **more}


def error(message: str, source: str = "agent_loop") -> dict[str, Any]:
    return {"type": "error", "source": source, "message": message, "session_id": "s"}


def test_the_final_text_is_shown_only_if_it_is_new() -> None:
    text = f"Done.\n\n{MARKER}\n"
    final = {**GOOD, "finalText": text.strip()}
    assert texts(events(INIT, word(text), final)) == [text.rstrip("\n")]
    assert texts(events(INIT, final)) == [text.strip()]
    assert verdict(INIT, word(text), final)["completed"]
    assert verdict(INIT, final)["completed"]


def test_an_earlier_message_reported_as_the_final_one_is_not_shown_again() -> None:
    """0.225.2 does this after a last message of 200 KB."""
    found = events(INIT, word("Now the file."), word(f"All done.\n{MARKER}"), {**GOOD, "finalText": "Now the file."})
    assert texts(found) == ["Now the file.", f"All done.\n{MARKER}"]


def test_a_copied_line_is_skipped_but_the_same_words_later_are_shown() -> None:
    thought = {"type": "reasoning", "id": "r", "text": "Hm.", "session_id": "s"}
    found = events(INIT, thought, thought, word("Ok."), word("Ok."), word("Ok.", id="m-2"), {**thought, "id": "q"})
    assert texts(found, Tag.THINK) == ["Hm.", "Hm."]
    assert texts(found) == ["Ok.", "Ok."]


def test_messages_of_another_session_come_from_a_subagent() -> None:
    lines = [INIT, word(MARKER, session_id="child"), word("Still at it."), GOOD]
    assert texts(events(*lines), Tag.SYS) == [MARKER]
    assert not verdict(*lines)["completed"]


def test_an_echoed_prompt_does_not_complete_the_run() -> None:
    prompt = word(f"Say\n{MARKER}\nwhen done.", role="user")
    assert not verdict(INIT, prompt, word("Not yet."), GOOD)["completed"]


def test_unicode_line_separators_are_kept() -> None:
    text = "one\u2028two\u2029three\u0085four"
    assert texts(events(INIT, word(text), {**GOOD, "finalText": text})) == [text]


@pytest.mark.parametrize("how", ["stream", "stream-cli", "json", "text"])
def test_insufficient_permission_is_a_denial_in_every_format(how: str) -> None:
    lines: list[Any] = []
    stderr = ""
    match how:
        case "stream":
            lines = [INIT, error(REFUSED), error("Exec failed", "cli")]
        case "stream-cli":
            lines = [INIT, error(REFUSED, "cli")]
        case "json":
            lines = [
                {"type": "result", "subtype": "failure", "is_error": True, "num_turns": 0, "result": REFUSED}
                | {"session_id": "s"}
            ]
        case "text":
            stderr = f"Error during droid execution: {REFUSED}"
    assert verdict(*lines, stderr=stderr, code=1)["outcome"] == "permission_denied"


def test_the_agents_words_in_place_of_an_error_are_not_classified() -> None:
    words = "I saw 401 Unauthorized: the API key is wrong, rate limit, quota"
    assert verdict(INIT, word(words), error(words, "cli"), code=1)["outcome"] == "failed"
    failure = {"type": "result", "subtype": "failure", "is_error": True, "result": words, "session_id": "s"}
    assert verdict(failure, code=1)["outcome"] == "failed"
    assert texts(events(failure)) == []
    assert verdict(stderr=f"Error during droid execution: {words}", code=1)["outcome"] == "failed"


def test_an_error_decides_the_outcome_only_without_a_good_result() -> None:
    lines = [INIT, error("503 busy"), word(MARKER), GOOD]
    assert verdict(*lines)["completed"]
    assert verdict(INIT, error("503 busy"), code=-9)["outcome"] == "overloaded"


def test_the_wait_for_a_rate_limit_is_read_from_its_message() -> None:
    told = verdict(INIT, error("429 Too many. Please try again in 3 minutes."), error("Exec failed", "cli"), code=1)
    assert (told["outcome"], told["retry_after"]) == ("rate_limited", 180)


def test_a_repeated_call_starts_and_ends_once() -> None:
    call = {"type": "tool_call", "id": "a", "toolName": "Execute", "parameters": {"command": "ls"}, "session_id": "s"}
    done = {"type": "tool_result", "id": "a", "toolId": "Execute", "isError": False, "value": "out", "session_id": "s"}
    found = events(INIT, call, call, done, done, GOOD)
    assert [e.tool.input for e in found if isinstance(e, ToolStart)] == [{"command": "ls"}]
    assert [e.text for e in found if isinstance(e, ToolOutput)] == ["out"]
    assert [(e.tool.name, e.tool.status) for e in found if isinstance(e, ToolEnd)] == [("Execute", ToolStatus.OK)]
    alone = events(INIT, {**done, "isError": None, "value": {"a": 1}})
    assert [e.text for e in alone if isinstance(e, ToolOutput)] == ['{"a":1}']
    assert [e.tool.status for e in alone if isinstance(e, ToolEnd)] == [ToolStatus.UNKNOWN]
    assert len([e for e in alone if isinstance(e, ToolStart)]) == 1


def test_a_run_may_have_two_results() -> None:
    found = events(INIT, word("One."), GOOD, word("Two."), {**GOOD, "finalText": "Two."})
    assert [r["ok"] for r in metas(found, "result")] == [True, True]


def test_an_unknown_type_is_kept_whole() -> None:
    new = {"type": "checkpoint", "session_id": "s"}
    assert metas(events(INIT, new, GOOD), "unknown") == [{"kind": "unknown", "line": new}]
    assert verdict(INIT, word(MARKER), new, GOOD)["completed"]


def test_missing_or_odd_fields_cost_only_themselves() -> None:
    found = events(
        INIT,
        {"type": "message", "role": "assistant"},
        word([7]),
        word("?", role=5),
        {"type": "reasoning", "text": 3},
        {"type": "tool_call"},
        {"type": "tool_result", "id": "a", "error": "no"},
        {"type": "error"},
        {"type": "completion", "usage": {"input_tokens": "many", "output_tokens": 4}},
    )
    assert texts(found) == []
    assert texts(found, Tag.SYS) == ["?"]
    assert [e.tool.status for e in found if isinstance(e, ToolEnd)] == [ToolStatus.FAIL]
    assert [(e.usage.prompt_tokens, e.usage.completion_tokens) for e in found if isinstance(e, UsageEvent)] == [
        (None, 4)
    ]


def test_a_run_without_words_and_tools_is_empty() -> None:
    assert verdict(INIT, {**GOOD, "finalText": ""})["outcome"] == "empty"


def test_json_in_text_output_is_the_agents_words() -> None:
    line = '{"type":"result","subtype":"success"}'
    assert texts(events(line, MARKER)) == [line, MARKER]


def test_a_result_may_span_several_lines() -> None:
    result = {"type": "result", "subtype": "success", "is_error": False, "result": MARKER, "session_id": "s"}
    assert verdict(*json.dumps(result, indent=2).split("\n"))["completed"]


def test_carriage_returns_and_escape_sequences_do_not_prevent_completion() -> None:
    lines = [json.dumps(v) + "\r" for v in (INIT, word(MARKER), GOOD)]
    lines[-1] += "\x1b[?25h"
    assert verdict(*lines)["completed"]


def test_a_recording_that_is_cut_anywhere_is_a_failure() -> None:
    data = SUCCESS.read_bytes()
    for cut in range(1200, len(data) - 1, 97):
        told: Any = list(replay(data[:cut], b"", "droid", 0, None, None))[-1][0][0]
        assert told.meta["outcome"] == "failed", cut


@st.composite
def strange(draw: st.DrawFn) -> str:
    """A damaged line. The recorded lines are no argument, since they would make hypothesis's name for it too long."""
    kind = draw(st.integers(0, 2))
    return draw(text_line() if kind == 0 else damaged(REAL))


@given(st.lists(strange(), max_size=12))
def test_nothing_raises_and_every_event_can_be_written(lines: list[str]) -> None:
    for event in events(*lines, stderr="\n".join(lines)):
        decode(encode(event))


@given(st.lists(words_line(), min_size=1, max_size=10), st.booleans())
def test_no_line_of_text_is_lost(lines: list[str], structured: bool) -> None:
    found = events(*([INIT] if structured else []), *lines)
    assert [e.text for e in found if isinstance(e, Text)] == lines
