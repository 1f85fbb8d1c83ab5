"""kimi-cli and Kimi Code: what the recordings do not cover, such as hooks, terminals and damaged lines."""

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
from ralph.transcripts.events import (
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

events = partial(events_of, "kimi")
verdict = partial(verdict_of, "kimi")
FIXTURES = Path(__file__).parents[2] / "fixtures"
REAL = recorded("kimi-cli") + recorded("kimi-code")
MARKER = "<promise>COMPLETE</promise>"
VERSION = {"role": "meta", "type": "system.version", "version": "2.1.0"}
HINT = {"role": "meta", "type": "session.resume_hint", "session_id": "session_1", "command": "kimi -r session_1"}
RESUME = "To resume this session: kimi -r session_1"


def word(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def call(identity: Any = "c1", name: str = "Bash", arguments: Any = '{"command": "ls"}') -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"role": "assistant", "tool_calls": [{"type": "function", "id": identity, "function": function}]}


def result(content: Any, identity: str = "c1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": identity, "content": content}


def ends(found: list[TranscriptEvent]) -> list[ToolStatus]:
    return [e.tool.status for e in found if isinstance(e, ToolEnd)]


# -- stream-json


def test_line_separators_inside_a_string_do_not_split_it() -> None:
    text = "one\u2028two\u2029three\u0085four"
    assert texts(events(word(text))) == [text]


def test_thoughts_of_either_kind_are_not_words() -> None:
    parts = [{"type": "think", "think": MARKER, "encrypted": None}, {"type": "text", "text": "Hi."}]
    found = events(word(parts, reasoning_content="Hm."))
    assert texts(found, Tag.THINK) == ["Hm.", MARKER]
    assert texts(found) == ["Hi."]


def test_the_output_of_a_hook_is_not_the_agents() -> None:
    assert texts(events(VERSION, word(f"Stop hook blocked\n\n{MARKER}"), word("Going on."), HINT)) == ["Going on."]
    assert not verdict(VERSION, word("Going on."), word(f"Stop hook\n\n{MARKER}"), HINT)["completed"]


def test_kimi_code_fails_without_its_last_line() -> None:
    assert verdict(VERSION, word(MARKER))["outcome"] == "failed"
    assert verdict(VERSION, word(MARKER), HINT)["completed"]
    assert verdict(VERSION, word(MARKER), stderr=RESUME + "\n")["completed"]  # a release that prints it on stderr


def test_kimi_cli_succeeds_only_if_it_ends_with_an_answer() -> None:
    assert verdict(word(MARKER))["completed"]
    assert verdict(call(), code=0)["outcome"] == "failed"
    assert verdict(word(MARKER), call(), result("<system>Done.</system>"))["outcome"] == "failed"


def test_the_session_is_reported_once_and_stdout_takes_precedence() -> None:
    found = events(VERSION, word("x"), HINT, stderr="To resume this session: cd '/a b' && kimi -r other\n")
    assert [e["session_id"] for e in metas(found, "session")] == ["session_1"]
    found = events(word("x"), stderr="To resume this session: cd '/a b' && kimi -r other\n")
    assert [e["session_id"] for e in metas(found, "session")] == ["other"]


@pytest.mark.parametrize(
    ("name", "content", "status"),
    [
        ("Bash", "out\nCommand failed with exit code: 3.", ToolStatus.FAIL),
        ("Bash", "Command failed with exit code: 3.\nthat was before", ToolStatus.OK),
        ("Bash", "start\nSession closed", ToolStatus.FAIL),
        ("Bash", "", ToolStatus.OK),
        ("Write", "Wrote 26 bytes to /x", ToolStatus.OK),
        ("Write", "Failed to write /x: parent directory does not exist.", ToolStatus.UNKNOWN),
        ("Read", "Command failed with exit code: 3.", ToolStatus.UNKNOWN),
    ],
)
def test_tool_status_in_kimi_code(name: str, content: str, status: ToolStatus) -> None:
    found = events(VERSION, call(name=name), result(content), result(content), word("x"), HINT)
    assert ends(found) == [status]
    assert [(e.tool.id, e.tool.name) for e in found if isinstance(e, ToolStart)] == [("c1", name)]


@pytest.mark.parametrize(
    ("content", "status"),
    [
        ([{"type": "text", "text": "<system>ERROR: no such file</system>"}], ToolStatus.FAIL),
        ([{"type": "text", "text": "<system>Done.</system>"}, {"type": "image_url"}], ToolStatus.OK),
        ("plain output", ToolStatus.OK),  # an error is always marked
    ],
)
def test_tool_status_in_kimi_cli(content: Any, status: ToolStatus) -> None:
    assert ends(events(call(name="ReadFile"), result(content), word("x"))) == [status]


def test_a_refused_tool_needs_a_person_unless_it_ran_later() -> None:
    no = result('Tool "Bash" was denied by permission rule. Reason: no')
    refused = verdict(VERSION, call(), no, word(MARKER), HINT)
    assert (refused["outcome"], refused["completed"]) == ("permission_denied", False)
    again = [call("c2"), result("fine", "c2")]
    assert verdict(VERSION, call(), no, *again, word(MARKER), HINT)["completed"]
    other = result('Tool "Write" was denied by permission rule.')  # the output of a command
    assert verdict(VERSION, call(), other, word(MARKER), HINT)["completed"]


def test_arguments_that_are_not_json_are_kept() -> None:
    (start,) = [e for e in events(call(arguments='{"command": "l'), word("x")) if isinstance(e, ToolStart)]
    assert start.tool.input == {"arguments": '{"command": "l'}


def test_a_retry_that_worked_is_not_a_failure() -> None:
    retry = {"role": "meta", "type": "turn.step.retrying", "failed_attempt": 1, "delay_ms": 589.2, "status_code": 503}
    (told,) = metas(events(VERSION, retry, word("x"), HINT), "retry")
    assert (told["class"], told["attempt"], told["delay_ms"]) == ("overloaded", 1, 589)
    assert verdict(VERSION, retry, word(MARKER), HINT)["completed"]
    assert verdict(VERSION, retry, code=-15)["outcome"] == "overloaded"


@pytest.mark.parametrize(
    ("message", "outcome"),
    [
        ("provider.auth_error: 401 Incorrect API key", "auth"),
        ("provider.rate_limit: 429 You exceeded your current quota", "quota"),
        ("provider.overloaded: 529 overloaded", "overloaded"),
        ("provider.api_error: 503 busy", "overloaded"),
        ("provider.api_error: terminated", "failed"),
        ("provider.connection_error: Connection error.", "failed"),
    ],
)
def test_kimi_code_reports_errors_on_stderr(message: str, outcome: str) -> None:
    stderr = f"error: failed to run prompt: {message}\nSee log: /x\n"
    assert verdict(VERSION, stderr=stderr, code=1)["outcome"] == outcome
    assert verdict(stderr=stderr, code=1)["outcome"] == outcome  # text
    assert verdict("kimi version 2.1.0", *stderr.splitlines(), code=1)["outcome"] == outcome  # text on a terminal


def test_a_copy_of_tool_output_on_stderr_is_not_an_error() -> None:
    stderr = "error: failed to run prompt: provider.auth_error: 401\n"
    assert verdict(VERSION, call(), result("x"), word(MARKER), HINT, stderr=stderr)["completed"]
    assert verdict("• Done.", f"  {MARKER}", stderr=stderr + RESUME + "\n")["completed"]


@pytest.mark.parametrize(
    ("lines", "outcome"),
    [
        (["Error code: 402 - {'error': 'Insufficient balance'}"], "quota"),
        (["Error code: 503 - {'error': {'message': 'overloaded'}}"], "overloaded"),
        (["Connection error."], "failed"),
        (["503 UNAVAILABLE. {'error': {}}"], "overloaded"),
        (["Max number of steps reached: 100"], "failed"),
    ],
)
def test_kimi_cli_prints_errors_among_its_lines(lines: list[str], outcome: str) -> None:
    seen = verdict(word(MARKER), *lines)
    assert (seen["outcome"], seen["completed"]) == (outcome, False)
    assert verdict(*lines)["outcome"] == outcome
    assert texts(events(*lines)) == []
    assert verdict(*lines, word(MARKER))["completed"]  # it continued


def test_errors_in_the_agents_words_are_not_errors() -> None:
    text = f"Error code: 401 - nobody knows\nLLM not set\n{MARKER}"
    assert verdict(word(text))["completed"]
    assert verdict("I saw this:", *text.split("\n"))["completed"]


def test_notices_are_shown_and_unknown_lines_are_kept() -> None:
    notice = {"id": "n", "severity": "info", "title": "Task done", "body": MARKER}
    plan = {"content": f"1. {MARKER}", "file_path": "/plan.md"}
    new, other = {"type": "checkpoint"}, {"role": "meta", "type": "goal.summary"}
    found = events(word("a"), notice, plan, new, other, word("b"), HINT)
    assert texts(found, Tag.SYS) == [f"Task done\n{MARKER}", f"1. {MARKER}"]
    assert [e["line"] for e in metas(found, "unknown")] == [new, other]


def test_mistyped_fields_do_not_cost_the_line() -> None:
    found = events(
        word("a"),
        {"role": "assistant"},
        {"role": "assistant", "content": 5, "tool_calls": "none"},
        {
            "role": "assistant",
            "content": ["bare", None, {"type": "text", "text": 7}],
            "tool_calls": [None, {"id": "x"}],
        },
        {"role": "tool", "content": "lost"},
        {"role": "tool", "tool_call_id": "y", "content": {"a": 1}},
        {"role": ["assistant"], "content": "?"},
    )
    assert texts(found) == ["a", "bare"]
    assert [e.tool.id for e in found if isinstance(e, ToolStart)] == ["x", "y"]
    assert not [e for e in found if isinstance(e, ToolOutput)]


def test_a_truncated_line_is_shown() -> None:
    last = json.dumps(HINT)[:40]
    assert last in texts(events(VERSION, word("Hi."), last), Tag.SYS)
    assert verdict(VERSION, word(MARKER), last)["outcome"] == "failed"


def test_every_end_is_reported() -> None:
    assert len(metas(events(VERSION, word("x"), HINT, HINT), "result")) == 2


def test_escape_sequences_around_json_are_ignored() -> None:
    lines = [
        "\x1b[?25l" + json.dumps(VERSION) + "\r",
        json.dumps(word(MARKER)) + "\r",
        json.dumps(HINT) + "\r\x1b[?25h",
    ]
    assert verdict(*lines)["completed"]


# -- text


def test_the_bullet_of_kimi_code_is_not_part_of_the_marker() -> None:
    assert verdict("• Working.", "", f"• {MARKER}", "", stderr=f"kimi version 2.1.0\n{RESUME}\n")["completed"]
    assert verdict("kimi version 2.1.0", f"• {MARKER}", "", RESUME)["completed"]  # on a terminal
    assert not verdict("• I will not print", f"  {MARKER} yet")["completed"]


def test_json_in_a_text_answer_is_part_of_the_answer() -> None:
    lines = ['{"role": "x"}', "{", '  "type": "module"', "}", '[{"a": 1}]', MARKER]
    assert "\n".join(texts(events(*lines))).split("\n") == lines
    assert verdict(*lines)["completed"]


def turn(*records: str) -> list[str]:
    return ["do it", "TurnBegin(user_input='do it')", "StepBegin(n=1)", *records]


def test_a_wrapped_marker_is_found() -> None:
    part = ["TextPart(", "    type='text',", "    text='" + "x" * 55 + "\\n<promise>COMP", "LETE</promise>\\n'", ")"]
    assert verdict(*turn(*part, "TurnEnd()"))["completed"]


def test_an_unfinished_turn_does_not_complete() -> None:
    part = f"TextPart(type='text', text='{MARKER}')"
    assert verdict(*turn(part))["outcome"] == "failed"
    assert verdict(*turn(part, "TurnEnd()"))["completed"]
    assert verdict(*turn(part, "StepInterrupted()", "Error code: 401 - {'error': {}}"))["outcome"] == "auth"


def test_a_string_can_look_like_a_record() -> None:
    lines = ["ThinkPart(", "    type='think',", "    think='" + "x" * 69, ")", "TurnEnd()", ")', encrypted=None", ")"]
    found = events(*turn(*lines, "TextPart(type='text', text=\"It's (done)\")", "TurnEnd()"))
    assert texts(found, Tag.THINK) == ["x" * 69 + ")TurnEnd())"]
    assert texts(found) == ["It's (done)"]
    assert len(metas(found, "result")) == 1


def test_escapes_in_reprs() -> None:
    found = events(*turn(r"TextPart(type='text', text='a\tb\\n\'\x41\u00e9\U0001f600\ud800 \q')", "TurnEnd()"))
    assert texts(found) == ["a\tb\\n'A\u00e9\U0001f600\ufffd q"]


def test_tools_and_usage_of_reprs() -> None:
    lines = [
        "ToolCall(type='function', id='c', function=FunctionBody(name='Shell', arguments='{}'))",
        "ToolResult(tool_call_id='c', return_value=ToolReturnValue(is_error=True, output=[TextPart(text='no')]))",
        "StatusUpdate(token_usage=TokenUsage(input_other=1, output=2, input_cache_read=4, input_cache_creation=8))",
        "StatusUpdate(token_usage=None, mode=<Mode.A: 'a'>, at=datetime.datetime(2026, 1, 2), more={'a': [1, 2.5]})",
        "TurnEnd()",
    ]
    found = events(*turn(*lines))
    assert ends(found) == [ToolStatus.FAIL]
    assert [e.text for e in found if isinstance(e, ToolOutput)] == ["no"]
    (usage,) = [e.usage for e in found if isinstance(e, UsageEvent)]
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens, usage.cache_write_tokens) == (
        13,
        2,
        4,
        8,
    )


def test_unknown_and_broken_records_are_shown() -> None:
    lines = ["SubagentEvent(event=TextPart(text='hello'))", "Odd(a=)", "Broken(", "    x='"]
    found = events(*turn(*lines))
    assert texts(found, Tag.SYS) == lines
    assert texts(found) == []


def test_a_truncated_recording_of_reprs_never_completes() -> None:
    whole = (FIXTURES / "kimi-cli" / "1.51.0" / "text-failtool.txt").read_text().split("\n")
    for length in range(len(whole) - 2):
        assert not verdict(*whole[:length])["completed"], length
    assert verdict(*whole)["completed"]


@given(st.lists(damaged(REAL) | text_line(), max_size=12), st.booleans())
def test_damaged_lines_never_raise_and_their_events_can_be_encoded(lines: list[str], reprs: bool) -> None:
    for event in events(*(turn() if reprs else []), *lines, stderr="\n".join(lines)):
        decode(encode(event))


@given(st.lists(st.sampled_from(["TextPart(", "text=", "'", '"', "\\", "x", "(", ")", "[", "{", ",", ":", "1e9", "<"])))
def test_random_reprs_never_raise(tokens: list[str]) -> None:
    for event in events(*turn("".join(tokens), *tokens)):
        decode(encode(event))


@given(st.lists(words_line(), min_size=1, max_size=10), st.booleans())
def test_no_line_of_text_is_lost(lines: list[str], structured: bool) -> None:
    found = events(*([word("")] if structured else []), *lines)
    assert [e.text for e in found if isinstance(e, Text)] == lines


def test_content_that_is_neither_text_nor_a_list_is_kept_as_unknown() -> None:
    found = events(word("a"), word(5), word({"type": "text", "text": "b"}))
    assert texts(found) == ["a", "b"]
    assert [e["line"] for e in metas(found, "unknown")] == [5]


@pytest.mark.parametrize("source", ["(", "[", "A(", "'\\", "<"])
def test_deeply_nested_and_unfinished_reprs_are_shown_as_they_are(source: str) -> None:
    line = f"TextPart(text={source * 100_000})"
    assert texts(events(*turn(line)), Tag.SYS) == [line]
