"""opencode, beyond the recordings: other versions, forks, damaged lines."""

from __future__ import annotations

import json
from functools import partial
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
    ToolStart,
    ToolStatus,
    TranscriptEvent,
    UsageEvent,
    decode,
    encode,
)

events = partial(events_of, "opencode")
verdict = partial(verdict_of, "opencode")
REAL = recorded("opencode")
MARKER = "<promise>COMPLETE</promise>"


def line(kind: str, **part: Any) -> dict[str, Any]:
    return {"type": kind, "timestamp": 1, "sessionID": "ses_1", "part": part}


def text(words: Any, **more: Any) -> dict[str, Any]:
    return line("text", type="text", text=words, time={"start": 1, "end": 2}, **more)


def tool(
    status: str = "completed", name: str = "bash", call: str = "c1", part: str | None = None, **state: Any
) -> dict[str, Any]:
    more = {"id": part} if part else {}
    return line("tool_use", type="tool", tool=name, callID=call, state={"status": status, **state}, **more)


def error(name: str, message: str, **data: Any) -> dict[str, Any]:
    return {"type": "error", "sessionID": "ses_1", "error": {"name": name, "data": {"message": message, **data}}}


START = line("step_start", type="step-start")
STOP = line("step_finish", type="step-finish", reason="stop")
CALLS = line("step_finish", type="step-finish", reason="tool-calls")


def ends(found: list[TranscriptEvent]) -> list[ToolStatus]:
    return [e.tool.status for e in found if isinstance(e, ToolEnd)]


def test_an_unknown_type_is_reported_whole() -> None:
    new = {"type": "snapshot", "sessionID": "ses_1", "files": [1]}
    assert metas(events(START, new), "unknown") == [{"kind": "unknown", "line": new}]
    assert verdict(START, text(MARKER), new, STOP)["completed"]


def test_a_field_of_an_unexpected_type_costs_only_that_field() -> None:
    found = events(
        {"type": "text", "sessionID": 5},
        {"type": "text", "sessionID": "ses_1", "part": "words"},
        text(["no", "words"]),
        {"type": "tool_use", "part": {"state": "done"}},
        tool("completed", input="ls", output={"lines": 2}, metadata=[], time={"start": "x"}),
        {"type": "step_finish", "part": {"tokens": {"input": "many", "cache": 3}, "cost": None}},
        {"type": "error", "error": "it broke"},
        {"type": "error"},
        {"type": ["text"]},
    )
    assert [e.tool.name for e in found if isinstance(e, ToolStart)] == ["tool", "bash"]
    assert ends(found) == [ToolStatus.UNKNOWN, ToolStatus.OK]
    assert [m["message"] for m in metas(found, "error")] == ["it broke", "opencode failed"]
    assert not any(isinstance(e, UsageEvent) for e in found)
    assert metas(found, "session") == [{"kind": "session", "session_id": "ses_1"}]


def test_the_first_line_names_the_session_whatever_its_type() -> None:
    found = events({"type": "snapshot", "sessionID": "ses_1"}, START)
    assert [m["kind"] for m in metas(found, "session") + metas(found, "unknown")] == ["session", "unknown"]


def test_a_call_reported_while_it_runs_starts_and_ends_once() -> None:
    running, done = tool("running", part="p1"), tool("completed", part="p1", output="x")
    found = events(START, running, running, done, done, CALLS, START, text("ok"), STOP)
    assert [e.tool.id for e in found if isinstance(e, ToolStart)] == ["c1"]
    assert ends(found) == [ToolStatus.OK]


def test_call_ids_may_repeat_in_different_parts() -> None:
    found = events(START, tool(part="p1"), CALLS, START, tool(part="p2"), CALLS, START, text("ok"), STOP)
    assert ends(found) == [ToolStatus.OK, ToolStatus.OK]


def test_a_repeated_part_counts_once() -> None:
    finish = line("step_finish", id="p9", reason="stop", tokens={"input": 10, "output": 1})
    found = events(START, text("hello", id="p1"), text("hello", id="p1"), finish, finish)
    assert texts(found) == ["hello"]
    assert len([e for e in found if isinstance(e, UsageEvent)]) == 1


@pytest.mark.parametrize(
    ("tokens", "prompt", "completion"),
    [
        # reasoning apart from the output, as the total shows
        ({"total": 36, "input": 10, "output": 4, "reasoning": 2, "cache": {"read": 15, "write": 5}}, 30, 6),
        # older: reasoning within the output, with a total and without
        ({"total": 34, "input": 10, "output": 4, "reasoning": 2, "cache": {"read": 15, "write": 5}}, 30, 4),
        ({"input": 10, "output": 4, "reasoning": 2, "cache": {"read": 15, "write": 5}}, 30, 4),
        ({"input": 10, "output": 4}, 10, 4),
    ],
)
def test_tokens_mean_the_same_in_every_version(tokens: dict[str, Any], prompt: int, completion: int) -> None:
    seen = verdict(START, text("hi"), line("step_finish", reason="stop", tokens=tokens, cost=0))["usage"]
    assert (seen["prompt_tokens"], seen["completion_tokens"]) == (prompt, completion)
    assert "cost_usd" not in seen  # opencode writes 0 where it knows no price


def test_a_run_that_stops_in_the_middle_is_a_failure() -> None:
    assert verdict(START, text("I will look."), tool(), CALLS)["outcome"] == "failed"
    assert verdict(START, tool(), CALLS, START)["outcome"] == "failed"


def test_complete_words_are_an_end_without_the_last_step_finish() -> None:
    assert verdict(START, tool(), CALLS, START, text(f"Done.\n{MARKER}"))["completed"]


def test_stop_in_a_step_with_calls_is_the_end_only_if_nothing_follows() -> None:
    assert not metas(events(START, tool(), STOP, START), "result")
    assert verdict(START, tool(), STOP, START, text(MARKER), STOP)["completed"]
    assert [r["ok"] for r in metas(events(START, tool(), STOP), "result")] == [True]


@pytest.mark.parametrize("reason", ["length", "content-filter", "error"])
def test_a_step_that_ends_badly_fails_the_run(reason: str) -> None:
    seen = verdict(START, text(MARKER), line("step_finish", reason=reason))
    assert (seen["outcome"], seen["completed"]) == ("failed", False)


def test_an_error_does_not_count_if_the_run_recovers() -> None:
    overflow = error("ContextOverflowError", "too long")
    assert verdict(START, overflow, code=1)["outcome"] == "context_exceeded"
    assert verdict(START, overflow, START, text(MARKER), STOP)["completed"]


@pytest.mark.parametrize(
    ("name", "message", "data", "outcome"),
    [
        ("ProviderAuthError", "no credentials", {}, "auth"),
        ("APIError", "You exceeded your current quota", {"statusCode": 429}, "quota"),
        ("APIError", "Overloaded", {"statusCode": 529}, "overloaded"),
        ("MessageAbortedError", "The operation was aborted.", {}, "failed"),
        ("UnknownError", "Unexpected server error. Check server logs for details.", {}, "failed"),
    ],
)
def test_errors_are_classified(name: str, message: str, data: dict[str, Any], outcome: str) -> None:
    assert verdict(error(name, message, **data), code=1)["outcome"] == outcome


@pytest.mark.parametrize(
    ("headers", "field", "value"),
    [
        ({"Retry-After": "7"}, "retry_after", 7),
        ({"retry-after-ms": "1500"}, "retry_after", 1.5),
        ({"retry-after": "Sun, 15 Nov 2026 19:00:00 GMT"}, "resets_at", 1794769200),
        ({"retry-after": "soon"}, "retry_after", 2),
    ],
)
def test_the_end_of_a_limit_comes_from_the_headers_or_the_message(
    headers: dict[str, str], field: str, value: float
) -> None:
    limit = error("APIError", "Too many, please retry in 2s.", statusCode=429, responseHeaders=headers)
    assert verdict(limit, code=1)[field] == value


def test_a_refused_call_needs_a_person_unless_its_tool_is_allowed_later() -> None:
    no = tool("error", error="The user has specified a rule which prevents you from using this specific tool call.")
    refused = verdict(START, no, CALLS, START, text(MARKER), STOP)
    assert (refused["outcome"], refused["completed"]) == ("permission_denied", False)
    assert verdict(START, no, CALLS, START, tool(call="c2"), CALLS, START, text(MARKER), STOP)["completed"]
    eacces = tool("error", name="write", error="EACCES: permission denied, open '/etc/x'")
    assert verdict(START, eacces, CALLS, START, text(MARKER), STOP)["completed"]


def test_a_command_killed_by_a_signal_has_failed() -> None:
    assert ends(events(tool(metadata={"exit": None}))) == [ToolStatus.FAIL]


def test_words_of_a_subagent_or_of_the_cli_do_not_count_as_the_agents() -> None:
    found = events(START, text("mine"), text("another's", sessionID="ses_2"), text("the CLI's", synthetic=True), STOP)
    assert texts(found) == ["mine"]
    assert texts(found, Tag.SYS) == ["another's", "the CLI's"]


def test_unicode_line_separators_do_not_split_a_string() -> None:
    words = "one\u2028two\u2029three\u0085four"
    assert texts(events(START, text(words), STOP)) == [words]


def test_a_truncated_line_is_shown() -> None:
    cut = json.dumps(text("never whole"))[:60]
    found = events(START, cut)
    assert cut in texts(found, Tag.SYS)
    assert metas(found, "parse_error")
    assert verdict(START, text(MARKER), json.dumps(STOP)[:50])["outcome"] == "failed"


def test_a_truncated_first_line_is_not_an_answer() -> None:
    cut = json.dumps(START, separators=(",", ":"))[:40]
    assert verdict(cut)["outcome"] == "failed"
    assert verdict(cut, "and words after it", MARKER)["completed"]


def test_json_in_a_text_answer_is_text() -> None:
    lines = ['{"type": "result", "ok": true}', "{", '  "type": "module"', "}", '[{"a": 1}]', MARKER]
    assert "\n".join(texts(events(*lines))).split("\n") == lines
    assert verdict(*lines)["completed"]


def test_escape_sequences_around_json_are_ignored() -> None:
    lines = ["\x1b[?25l" + json.dumps(START) + "\r", json.dumps(text(MARKER)) + "\r", json.dumps(STOP) + "\x1b[?25h"]
    assert verdict(*lines)["completed"]


def test_what_a_tool_prints_on_stderr_is_not_opencodes_error() -> None:
    printed = "\x1b[0m$ \x1b[0mcurl x\nError: 401 Unauthorized\n\x1b[0m\n"
    assert verdict(MARKER, stderr=printed)["completed"]
    failed = "\x1b[0m✗ \x1b[0mread failed\n\x1b[91m\x1b[1mError: \x1b[0mFile not found: x\n"
    assert verdict(MARKER, stderr=failed)["completed"]
    own = "\x1b[91m\x1b[1mError: \x1b[0mIncorrect API key provided\n"
    assert verdict(MARKER, stderr=printed + own, code=1)["outcome"] == "auth"
    assert verdict("Error: the parser dropped 401 lines", MARKER)["completed"]


def test_tools_are_recognised_on_a_terminal_without_colours() -> None:
    lines = ["", "> build · m", "", "Hi.", "", "$ ls", MARKER, "", "Bye.", ""]
    found = events(*lines)
    assert [w for w in texts(found) if w] == ["Hi.", "Bye."]
    assert not verdict(*lines)["completed"]


@given(st.lists(damaged(REAL) | text_line(), max_size=12))
def test_damaged_lines_never_raise_and_every_event_can_be_encoded(lines: list[str]) -> None:
    for event in events(*lines, stderr="\n".join(lines)):
        decode(encode(event))


@given(st.lists(words_line(), min_size=1, max_size=10), st.booleans())
def test_no_line_of_text_is_lost(lines: list[str], structured: bool) -> None:
    found = events(*([START] if structured else []), *lines)
    shown = [e.text for e in found if isinstance(e, Text)]
    assert shown == [one.removeprefix("Thinking: ") if not structured else one for one in lines]
