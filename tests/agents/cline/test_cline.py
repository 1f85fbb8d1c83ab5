"""Cline, beyond the recordings: refusals that do not matter in the end, costs, subagents, damaged lines."""

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

events = partial(events_of, "cline")
verdict = partial(verdict_of, "cline")
SUCCESS = Path(__file__).parents[2] / "fixtures" / "cline" / "3.0.65" / "json-success.jsonl"
REAL = recorded("cline")
MARKER = "<promise>COMPLETE</promise>"


def agent(kind: str, **fields: Any) -> dict[str, Any]:
    return {"ts": "t", "type": "agent_event", "event": {"type": kind, **fields}}


START = agent("iteration_start", iteration=1)
NEXT = agent("iteration_start", iteration=2)


def result(text: str = "x", reason: str = "completed", **more: Any) -> dict[str, Any]:
    return {"ts": "t", "type": "run_result", "finishReason": reason, "text": text, **more}


def delta(text: str) -> dict[str, Any]:
    return agent("content_start", contentType="text", text=text, accumulated="…")


def whole(text: str) -> dict[str, Any]:
    return agent("content_end", contentType="text", text=text)


def tool(call: str, output: Any, name: str = "run_commands", **more: Any) -> list[dict[str, Any]]:
    return [
        agent("content_start", contentType="tool", toolName=name, toolCallId=call, input={"commands": ["ls"]}),
        agent("content_end", contentType="tool", toolName=name, toolCallId=call, output=output, **more),
    ]


def done(text: str) -> list[dict[str, Any]]:
    return [START, whole(text), result(text)]


def test_a_marker_split_over_deltas_is_one_line_and_appears_once() -> None:
    text = f"Done.\n\n{MARKER}\n"
    lines = [START, *(delta(c) for c in text), whole(text), agent("done", reason="completed", text=text), result(text)]
    assert "".join(f"{t}\n" for t in texts(events(*lines))) == text
    assert verdict(*lines)["completed"]


def test_words_without_deltas_or_only_in_the_result_are_shown() -> None:
    assert texts(events(*done("Hello."))) == ["Hello."]
    assert texts(events(START, result("Hello."))) == ["Hello."]
    assert verdict(START, result(MARKER))["completed"]


def test_a_thought_is_shown_before_the_words_that_follow_it() -> None:
    thought = agent("content_start", contentType="reasoning", reasoning="Hm.", redacted=False)
    copy = agent("content_end", contentType="reasoning", reasoning="Hm.")
    found = events(START, thought, delta("Hello."), whole("Hello."), copy, result("Hello."))
    assert [(e.tag, e.text) for e in found if isinstance(e, Text)] == [(Tag.THINK, "Hm."), (Tag.AI, "Hello.")]


def test_unicode_line_separators_do_not_split_a_string() -> None:
    text = "one\u2028two\u2029three\u0085four"
    assert texts(events(*done(text))) == [text]


def test_a_subagents_words_do_not_count_as_the_agents() -> None:
    other = {**whole(MARKER), "parentAgentId": "agent_1"}
    lines = [START, other, NEXT, whole("Still at it."), result("Still at it.")]
    assert texts(events(*lines), Tag.SYS) == [MARKER]
    assert not verdict(*lines)["completed"]


def test_a_refused_tool_needs_a_person_unless_it_is_allowed_later() -> None:
    refusal = {"error": 'Tool "run_commands" requires approval in a TTY session -- NOT a tool or system failure.'}
    no = tool("a", refusal, error=json.dumps(refusal))
    yes = tool("b", [{"query": "ls", "result": "x", "success": True}])
    judged = verdict(START, *no, *done(MARKER))
    assert (judged["outcome"], judged["completed"]) == ("permission_denied", False)
    assert verdict(START, *no, *yes, *done(MARKER))["completed"]


def test_a_tool_that_prints_a_refusal_was_not_refused() -> None:
    printed = [{"query": "cat log", "result": 'Tool "x" requires approval', "success": False, "error": "exit 1"}]
    assert verdict(START, *tool("a", printed), *done(MARKER))["completed"]


@pytest.mark.parametrize(
    ("output", "more", "status", "text"),
    [
        ([{"query": "a", "result": "1", "success": True}], {}, ToolStatus.OK, "1"),
        ([{"query": "a", "result": "1", "success": True}, {"query": "b", "success": False}], {}, ToolStatus.FAIL, None),
        ({"query": "edit", "result": "File created", "success": True}, {}, ToolStatus.OK, "File created"),
        ("plain", {}, ToolStatus.OK, "plain"),
        ({"error": "no such file"}, {"error": "no such file"}, ToolStatus.FAIL, "no such file"),
        (None, {"error": "broken"}, ToolStatus.FAIL, "broken"),
        (None, {}, ToolStatus.UNKNOWN, None),
        ([{"query": "a", "result": "", "success": "perhaps"}], {}, ToolStatus.UNKNOWN, None),
    ],
)
def test_the_status_and_output_of_a_call(
    output: Any, more: dict[str, Any], status: ToolStatus, text: str | None
) -> None:
    found = events(START, *tool("a", output, durationMs=7, **more))
    assert [(e.tool.status, e.tool.duration_ms) for e in found if isinstance(e, ToolEnd)] == [(status, 7)]
    if text is not None:
        assert [e.text for e in found if isinstance(e, ToolOutput)] == [text]


def test_a_repeated_call_starts_and_ends_once() -> None:
    start, stop = tool("a", "out")
    found = events(START, start, start, stop, stop)
    assert len([e for e in found if isinstance(e, ToolStart)]) == len([e for e in found if isinstance(e, ToolEnd)]) == 1
    alone = events(START, stop)
    assert len([e for e in alone if isinstance(e, ToolStart)]) == len([e for e in alone if isinstance(e, ToolEnd)]) == 1


def test_costs_add_up_and_the_final_total_is_not_counted_again() -> None:
    calls = [
        agent("usage", inputTokens=100, outputTokens=10, totalInputTokens=100, totalCost=0.25),
        agent("usage", inputTokens=200, outputTokens=20, totalInputTokens=300, totalCost=0.75),
    ]
    total = {"inputTokens": 300, "outputTokens": 30, "totalCost": 0.75}
    used = verdict(START, *calls, result(aggregateUsage=total))["usage"]
    assert (used["prompt_tokens"], used["completion_tokens"], used["cost_usd"]) == (300, 30, 0.75)


def test_usage_that_only_the_total_reports_is_added() -> None:
    call = agent("usage", inputTokens=100, outputTokens=10, totalCost=0)
    total = {"inputTokens": 150, "outputTokens": 30, "totalCost": 0.5}
    used = verdict(START, call, result(aggregateUsage=total, model={"id": "m"}))["usage"]
    assert used == {
        "prompt_tokens": 150,
        "completion_tokens": 30,
        "total_tokens": 180,
        "cost_usd": 0.5,
        "model": "m",
    }


def test_cached_tokens_missing_from_the_input_are_added_to_the_prompt() -> None:
    call = agent("usage", inputTokens=100, outputTokens=10, cacheReadTokens=800, cacheWriteTokens=50)
    used = verdict(START, call, result())["usage"]
    assert (used["prompt_tokens"], used["cached_tokens"], used["cache_write_tokens"]) == (950, 800, 50)


@pytest.mark.parametrize(
    ("kind", "message", "outcome"),
    [
        ("auth", "who are you", "auth"),
        ("rate_limit", "slow down", "rate_limited"),
        ("unknown", "You exceeded your current quota", "quota"),
        ("context_window_exceeded", "too much", "context_exceeded"),
        (None, "The server had an error while processing your request.", "overloaded"),
        ("unknown", "something else", "failed"),
    ],
)
def test_errors_are_classified_by_the_clis_name_or_the_providers_message(
    kind: str | None, message: str, outcome: str
) -> None:
    error = agent("error", error={"name": "Error", "message": message}, errorClass=kind, recoverable=False)
    assert verdict(START, error, result(message, "error"), code=1)["outcome"] == outcome


def test_a_recoverable_error_does_not_fail_the_run() -> None:
    error = agent("error", error={"message": "1 tool call(s) failed: 401 unauthorized"}, recoverable=True)
    assert verdict(START, error, *done(MARKER))["completed"]


@pytest.mark.parametrize("reason", ["aborted", "max_iterations", "mistake_limit"])
def test_any_finish_reason_but_completed_is_a_failure(reason: str) -> None:
    judged = verdict(START, whole(MARKER), result(MARKER, reason))
    assert (judged["outcome"], judged["completed"]) == ("failed", False)


def test_an_abort_after_the_result_counts() -> None:
    aborted = {"ts": "t", "type": "run_aborted", "reason": "local_abort", "message": "aborted"}
    found = events(*done(MARKER), aborted)
    assert [r["ok"] for r in metas(found, "result")] == [True, False]
    assert not verdict(*done(MARKER), aborted)["completed"]


def test_the_done_event_counts_if_the_result_is_missing() -> None:
    assert verdict(START, whole(MARKER), agent("done", reason="completed"))["completed"]
    assert verdict(START, whole(MARKER))["outcome"] == "failed"


def test_an_unknown_type_is_reported_whole() -> None:
    new, event = {"ts": "t", "type": "team_event", "id": 5}, agent("checkpoint")
    assert [k["line"] for k in metas(events(START, new, event), "unknown")] == [new, event]
    assert verdict(START, new, event, *done(MARKER))["completed"]


def test_a_field_of_an_unexpected_type_costs_only_that_field() -> None:
    found = events(
        START,
        {"ts": "t", "type": "agent_event"},
        agent("content_start"),
        agent("content_start", contentType="text", text=5),
        agent("content_start", contentType="tool"),
        agent("content_end", contentType="tool", toolCallId="a", output=[1, "x"]),
        agent("usage", inputTokens="many"),
        agent("error", error=None),
        {"ts": "t", "type": "run_result", "finishReason": 5, "usage": [], "model": "m"},
    )
    assert texts(found) == []
    assert not [e for e in found if isinstance(e, UsageEvent)]
    assert [e.text for e in found if isinstance(e, ToolOutput)] == ['[1,"x"]']
    assert [r["ok"] for r in metas(found, "result")] == [False]


def test_json_in_a_text_answer_is_text() -> None:
    line = '{"type":"run_result","finishReason":"completed"}'
    assert texts(events(line, MARKER)) == [line, MARKER]


def test_carriage_returns_and_escape_sequences_around_json_are_ignored() -> None:
    lines = [json.dumps(v) + "\r" for v in done(MARKER)]
    lines[-1] += "\x1b[?25h"
    assert verdict(*lines)["completed"]


def test_the_text_format_with_and_without_colours() -> None:
    coloured = [
        "\x1b[2m[thinking] \x1b[0m\x1b[2mFirst.\x1b[0m",
        "\x1b[2mSecond.\x1b[0m",
        "\x1b[36m[run_commands]\x1b[0m ls -la",
        "   \x1b[90m⎿ \x1b[0m\x1b[2mtotal 16\x1b[0m",
        MARKER,
    ]
    found = events(*coloured)
    assert texts(found, Tag.THINK) == ["First.", "Second."]
    assert texts(found, Tag.TOOL) == ["[run_commands] ls -la", "   ⎿ total 16"]
    assert texts(found) == [MARKER]
    bare = events("[thinking] First.", "[run_commands] ls -la", "   ⎿ total 16", "[x] a done item", MARKER)
    assert texts(bare) == ["[x] a done item", MARKER]


def test_warnings_on_stderr_are_not_errors() -> None:
    stderr = "Warning: AI SDK Warning System: ...\n      at iX (chunk.js:26:46952)\nDeprecationWarning: error: old"
    assert verdict(MARKER, stderr=stderr)["completed"]


def test_a_recording_truncated_before_the_done_event_is_a_failure() -> None:
    data = SUCCESS.read_bytes()
    for cut in range(200, data.index(b'"type":"done"'), 97):
        judged: Any = list(replay(data[:cut], b"", "cline", 0, None, None))[-1][0][0]
        assert judged.meta["outcome"] == "failed", cut


@st.composite
def strange(draw: st.DrawFn) -> str:
    """A damaged line. The real ones are no argument, because hypothesis would print them all."""
    kind = draw(st.integers(0, 2))
    return draw(text_line() if kind == 0 else damaged(REAL))


@given(st.lists(strange(), max_size=12))
def test_damaged_lines_never_raise_and_every_event_can_be_encoded(lines: list[str]) -> None:
    for event in events(*lines, stderr="\n".join(lines)):
        decode(encode(event))


@given(st.lists(words_line(), min_size=1, max_size=10), st.booleans())
def test_no_line_of_text_is_lost(lines: list[str], structured: bool) -> None:
    found = events(*([START] if structured else []), *lines)
    assert [e.text for e in found if isinstance(e, Text)] == lines
