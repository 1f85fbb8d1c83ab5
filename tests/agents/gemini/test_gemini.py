"""Gemini CLI: what the recordings do not cover, such as other versions, damaged lines and provider errors."""

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
    UsageEvent,
    decode,
    encode,
)

events = partial(events_of, "gemini")
verdict = partial(verdict_of, "gemini")
FIXTURES = Path(__file__).parents[2] / "fixtures" / "gemini"
REAL = recorded("gemini")
MARKER = "<promise>COMPLETE</promise>"
INIT = {"type": "init", "timestamp": "t", "session_id": "s-1", "model": "auto"}
GOOD = {"type": "result", "timestamp": "t", "status": "success", "stats": {"total_tokens": 12, "input_tokens": 10}}


def word(text: Any, **more: Any) -> dict[str, Any]:
    return {"type": "message", "timestamp": "t", "role": "assistant", "content": text, "delta": True, **more}


def result_error(message: str, kind: str = "unknown") -> dict[str, Any]:
    return {"type": "result", "timestamp": "t", "status": "error", "error": {"type": kind, "message": message}}


def test_a_marker_split_over_deltas_is_one_line() -> None:
    found = events(INIT, *(word(c) for c in f"Done.\n\n{MARKER}\n"), GOOD)
    assert MARKER in texts(found)
    assert verdict(INIT, *(word(c) for c in f"Done.\n\n{MARKER}\n"), GOOD)["completed"]


def test_a_message_that_repeats_its_deltas_is_shown_once() -> None:
    whole = word("Hello.", delta=False)
    assert texts(events(INIT, word("Hel"), word("lo."), whole, GOOD)) == ["Hello."]
    assert texts(events(INIT, whole, GOOD)) == ["Hello."]


def test_a_message_may_be_a_list_of_parts() -> None:
    assert texts(events(INIT, word([{"text": "a"}, {"text": "b"}, 7]), GOOD)) == ["ab"]


def test_line_separators_inside_a_string_do_not_split_it() -> None:
    text = "one\u2028two\u2029three\u0085four"
    assert texts(events(INIT, word(text), GOOD)) == [text]


def test_an_unknown_type_is_kept_whole() -> None:
    new = {"type": "checkpoint", "timestamp": "t", "id": 5}
    assert metas(events(INIT, new, GOOD), "unknown") == [{"kind": "unknown", "line": new}]
    assert verdict(INIT, word(MARKER), new, GOOD)["completed"]


def test_missing_or_mistyped_fields_do_not_cost_the_line() -> None:
    found = events(
        INIT,
        {"type": "message", "role": "assistant"},
        {"type": "message", "role": 3, "content": "?"},
        {"type": "tool_use", "tool_name": ["x"], "parameters": "none"},
        {"type": "tool_result", "status": 5, "output": {"text": "out"}},
        {"type": "error"},
        {"type": "result", "status": "success", "stats": {"models": {"m": None, "n": {"tokens": "many"}}}},
    )
    starts = [e.tool for e in found if isinstance(e, ToolStart)]
    ends = [e.tool for e in found if isinstance(e, ToolEnd)]
    assert [s.id for s in starts] == [e.id for e in ends]
    assert ends[0].status is ToolStatus.UNKNOWN
    assert [e.text for e in found if isinstance(e, ToolOutput)] == ["out"]
    assert not any(isinstance(e, UsageEvent) for e in found)


def test_no_result_is_a_failure_even_with_exit_code_0() -> None:
    assert verdict(INIT, word(MARKER + "\n"))["outcome"] == "failed"


def test_a_truncated_line_is_shown_and_is_not_a_result() -> None:
    last = json.dumps(GOOD)[:40]
    found = events(INIT, word("Hi."), last)
    assert last in texts(found, Tag.SYS)
    assert metas(found, "parse_error")
    assert verdict(INIT, word(MARKER), last)["outcome"] == "failed"


def test_every_result_is_reported() -> None:
    assert len(metas(events(INIT, GOOD, GOOD), "result")) == 2
    assert verdict(INIT, word("x"), GOOD, result_error("no"))["outcome"] == "failed"


def test_a_truncated_json_document_is_not_an_answer() -> None:
    whole = (FIXTURES / "0.61.0" / "json-success.json").read_text()
    cut = whole[: whole.index('"stats"') + 40]
    assert MARKER in cut
    assert verdict(*cut.split("\n"))["outcome"] == "failed"
    assert texts(events(*cut.split("\n"))) == []
    assert verdict(*whole.split("\n"))["completed"]


def test_json_in_a_text_answer_is_part_of_the_answer() -> None:
    lines = ['{"name": "demo"}', "{", '  "type": "module"', "}", '[{"a": 1}]', MARKER]
    assert "\n".join(texts(events(*lines))).split("\n") == lines
    assert verdict(*lines)["completed"]


def test_escape_sequences_around_json_are_ignored() -> None:
    lines = ["\x1b[?25l" + json.dumps(INIT) + "\r", json.dumps(word(MARKER)) + "\r", json.dumps(GOOD) + "\r\x1b[?25h"]
    assert verdict(*lines)["completed"]


def test_lines_of_the_cli_on_a_terminal_are_not_the_agents() -> None:
    lines = ["YOLO mode is enabled. All tool calls will be automatically approved.\r", "Hi\r", MARKER + "\r"]
    assert verdict(*lines, "[STARTUP] Cannot measure phase 'x'\r")["completed"]
    assert verdict("Please set an Auth method in your settings.json", code=41)["outcome"] == "auth"


@pytest.mark.parametrize(
    ("message", "outcome"),
    [
        # Google answers a wrong key with 400
        (
            (
                '[API Error: {"error":{"code":400,"message":"API key not valid. Please pass a valid API key.",'
                '"status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}]'
            ),
            "auth",
        ),
        ('[API Error: {"error":{"code":403,"message":"Permission denied","status":"PERMISSION_DENIED"}}]', "auth"),
        # Google calls its limit per minute a quota
        (
            (
                "[API Error: You exceeded your current quota, please check your plan and billing details.\n"
                "Please retry in 26.5s.\nSuggested retry after 26s.]\nPlease wait and try again later."
            ),
            "rate_limited",
        ),
        ("[API Error: You have exhausted your daily quota on this model.]", "quota"),
        ("[API Error: You exceeded your current quota, please check your plan and billing details.]", "quota"),
        (
            (
                '[API Error: {"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum '
                'number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]'
            ),
            "context_exceeded",
        ),
        ('[API Error: {"error":{"code":503,"message":"try later","status":"UNAVAILABLE"}}]', "overloaded"),
        ("[API Error: exception TypeError: fetch failed sending request]", "failed"),
    ],
)
def test_api_errors_are_classified(message: str, outcome: str) -> None:
    assert verdict(INIT, result_error(message), code=1)["outcome"] == outcome


def test_a_limit_reports_when_it_ends() -> None:
    seen = verdict(INIT, result_error("[API Error: Your quota will reset after 1h2m3s.]"), code=1)
    assert seen["retry_after"] == 3723
    assert seen["outcome"] == "quota"


def test_a_text_error_can_span_several_lines() -> None:
    """Older releases print it on stderr and exit with 1."""
    text = "[API Error: You exceeded your current quota.\nPlease retry in 26s.]\nPlease wait and try again later.\n"
    seen = verdict("I'll look.", stderr=text, code=1)
    assert (seen["outcome"], seen["retry_after"]) == ("rate_limited", 26)
    assert verdict(stderr='[API Error: {"error":{"code":401,"message":"no"}}]\n', code=1)["outcome"] == "auth"


@pytest.mark.parametrize("warning", ["Loop detected, stopping execution", "Maximum session turns exceeded"])
def test_a_stopped_run_is_a_failure(warning: str) -> None:
    stopped = {"type": "error", "timestamp": "t", "severity": "warning", "message": warning}
    assert verdict(INIT, word(MARKER), stopped, GOOD)["outcome"] == "failed"
    assert verdict(INIT, {**stopped, "message": "Something else"}, word(MARKER), GOOD)["completed"]
    document = {"session_id": "s", "response": MARKER, "stats": {}, "warnings": [warning]}
    assert verdict(document)["outcome"] == "failed"
    assert verdict({**document, "warnings": ["Something else"]})["completed"]


def test_errors_in_the_agents_words_are_not_errors() -> None:
    said = word(f"I saw [API Error: 401 Unauthorized] and 429 in the log.\nAttempt 1 failed: quota\n{MARKER}\n")
    assert verdict(INIT, said, GOOD)["completed"]


def test_a_tool_refused_by_policy_needs_a_person_unless_it_ran_later() -> None:
    use = {"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "a", "parameters": {"command": "ls"}}
    no = {
        "type": "tool_result",
        "tool_id": "a",
        "status": "error",
        "error": {"type": "policy_violation", "message": "no"},
    }
    yes = {"type": "tool_result", "tool_id": "b", "status": "success", "output": "x"}
    refused = verdict(INIT, use, no, word(MARKER), GOOD)
    assert (refused["outcome"], refused["completed"]) == ("permission_denied", False)
    assert verdict(INIT, use, no, {**use, "tool_id": "b"}, yes, word(MARKER), GOOD)["completed"]


def test_the_text_format_reports_a_refused_tool_on_stderr() -> None:
    line = 'Error executing tool write_file: Tool "write_file" not found. Did you mean one of: "read_file"?\n'
    assert verdict(MARKER, stderr=line)["outcome"] == "permission_denied"
    assert verdict(MARKER, stderr=line.replace("write_file", "no_such_tool"))["completed"]


def test_a_silent_command_that_failed_is_a_failure() -> None:
    use = {"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "a"}
    end = {"type": "tool_result", "tool_id": "a", "status": "success", "output": "Command exited with code: 3"}
    assert verdict(INIT, use, end, word("x"), GOOD)["tools"]["fail"] == 1
    assert verdict(INIT, use, {**end, "output": "Command exited with code: 3\nok"}, word("x"), GOOD)["tools"]["ok"] == 1


def test_a_retry_that_worked_is_not_a_failure() -> None:
    retry = "Attempt 1 failed with status 503. Retrying with backoff... _ApiError: overloaded\n    at x\n"
    assert [r["class"] for r in metas(events(INIT, stderr=retry), "retry")] == ["overloaded"]
    assert verdict(INIT, word(MARKER), GOOD, stderr=retry)["completed"]
    assert verdict(INIT, stderr=retry, code=-9)["outcome"] == "overloaded"


def test_the_second_line_of_a_retry_can_give_its_delay() -> None:
    text = "Attempt 2 failed: Rate limit reached\nSuggested retry after 2s.. Retrying after 5389ms...\n"
    (retry,) = metas(events(INIT, stderr=text), "retry")
    assert (retry["class"], retry["attempt"], retry["delay_ms"]) == ("rate_limited", 2, 5389)


_REPORT = "Error when talking to Gemini API Full report available at: /t/gemini-client-error-T03-20-07-503Z.json\n"
_TOO_MANY = "Attempt 1 failed with status 429. Retrying with backoff... ApiError: Resource has been exhausted.\n"


def test_numbers_in_the_name_of_a_report_are_not_a_status() -> None:
    """All that 0.8 prints about an error; it exits with 0."""
    assert verdict("", stderr=_REPORT)["outcome"] == "failed"


def test_retries_explain_an_error_without_a_message() -> None:
    assert verdict("", stderr=_TOO_MANY + _REPORT)["outcome"] == "rate_limited"
    last = '{\n  "error": {\n    "type": "Error",\n    "message": "[object Object]",\n    "code": 1\n  }\n}\n'
    assert verdict("", stderr=_TOO_MANY + last, code=1)["outcome"] == "rate_limited"
    assert verdict("", stderr=last, code=1)["outcome"] == "failed"
    unknown = result_error("[API Error: An unknown error occurred.]")
    assert verdict(INIT, unknown, stderr=_TOO_MANY, code=1)["outcome"] == "rate_limited"
    assert verdict(INIT, unknown, code=1)["outcome"] == "failed"


def test_infinite_and_huge_numbers_are_not_counts() -> None:
    line = '{"type":"result","timestamp":"t","status":"success","stats":{"total_tokens":1e999,"input_tokens":%s}}'
    assert not [e for e in events(INIT, line % ("9" * 400)) if isinstance(e, UsageEvent)]


@given(st.lists(damaged(REAL) | text_line(), max_size=12))
def test_damaged_lines_never_raise_and_their_events_can_be_encoded(lines: list[str]) -> None:
    for event in events(*lines, stderr="\n".join(lines)):
        decode(encode(event))


@given(st.lists(words_line(), min_size=1, max_size=10), st.booleans())
def test_no_line_of_text_is_lost(lines: list[str], structured: bool) -> None:
    found = events(*([INIT] if structured else []), *lines)
    assert [e.text for e in found if isinstance(e, Text)] == lines


def test_a_repeated_tool_result_counts_once() -> None:
    use = {"type": "tool_use", "tool_name": "read_file", "tool_id": "a"}
    end = {"type": "tool_result", "tool_id": "a", "status": "success", "output": "x"}
    found = events(INIT, use, end, end, GOOD)
    assert [type(e) for e in found if isinstance(e, ToolStart | ToolOutput | ToolEnd)] == [
        ToolStart,
        ToolOutput,
        ToolEnd,
    ]


def test_calls_without_an_id_are_separate_calls() -> None:
    use, end = {"type": "tool_use", "tool_name": "read_file"}, {"type": "tool_result", "status": "success"}
    found = events(INIT, use, end, use, end, GOOD)
    assert len({e.tool.id for e in found if isinstance(e, ToolStart)}) == 2
    assert len({e.tool.id for e in found if isinstance(e, ToolEnd)}) == 2


def test_a_whole_message_as_long_as_its_fragments_is_shown_if_it_differs() -> None:
    def said(text: str, *, delta: bool) -> dict[str, Any]:
        return {"type": "message", "timestamp": "2026-01-01", "role": "assistant", "content": text, "delta": delta}

    found = events_of("gemini", said("abc", delta=True), said("xyz", delta=False))
    assert texts(found) == ["abc", "xyz"]
    assert texts(events_of("gemini", said("abc", delta=True), said("abc", delta=False))) == ["abc"]
    assert texts(events_of("gemini", said("ab", delta=True), said("abc", delta=False))) == ["abc"]
