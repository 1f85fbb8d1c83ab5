"""Copilot CLI, beyond the recordings: other versions, subagents, tokens, damaged lines."""

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
    ToolOutput,
    ToolStart,
    ToolStatus,
    TranscriptEvent,
    UsageEvent,
    decode,
    encode,
)

events = partial(events_of, "copilot")
verdict = partial(verdict_of, "copilot")
REAL = recorded("copilot")
MARKER = "<promise>COMPLETE</promise>"


def line(
    kind: str, /, *, agent: str | None = None, at: str = "2026-11-15T18:40:43.149Z", **data: Any
) -> dict[str, Any]:
    envelope = {"type": kind, "data": data, "id": "e", "timestamp": at, "parentId": "p"}
    return envelope | ({"agentId": agent} if agent else {})


def delta(fragment: Any, message: str = "m1", **more: Any) -> dict[str, Any]:
    return line("assistant.message_delta", messageId=message, deltaContent=fragment, **more)


def message(content: Any, identity: str = "m1", **more: Any) -> dict[str, Any]:
    return line("assistant.message", messageId=identity, content=content, **more)


def start(call: str = "c1", name: str = "bash", **more: Any) -> dict[str, Any]:
    return line("tool.execution_start", toolCallId=call, toolName=name, **more)


def done(call: str = "c1", **more: Any) -> dict[str, Any]:
    return line("tool.execution_complete", toolCallId=call, **more)


def result(code: Any = 0, **more: Any) -> dict[str, Any]:
    return {"type": "result", "timestamp": "t", "sessionId": "s-1", "exitCode": code, **more}


def ends(found: list[TranscriptEvent]) -> list[ToolStatus]:
    return [e.tool.status for e in found if isinstance(e, ToolEnd)]


def test_a_marker_split_over_fragments_is_one_line_and_appears_once() -> None:
    whole = f"Done.\u2028 Really.\n\n{MARKER}\n"
    lines = [*(delta(c) for c in whole), message(whole), result()]
    assert "\n".join(texts(events(*lines))) == whole.rstrip("\n")
    assert verdict(*lines)["completed"]


def test_fragments_without_an_id_are_joined() -> None:
    lines = [line("assistant.message_delta", deltaContent=c) for c in MARKER]
    assert texts(events(*lines, line("assistant.message", content=MARKER), result())) == [MARKER]


def test_the_whole_message_completes_its_fragments() -> None:
    assert texts(events(delta("Hel"), message("Hello."), result())) == ["Hello."]
    assert texts(events(delta("Hel"), delta("x", "m2"), message("Hello."), message("x", "m2"), result())) == [
        "Hel",
        "x",
        "lo.",
    ]


def test_a_thought_appears_once_and_before_the_words() -> None:
    thought = line("assistant.reasoning", reasoningId="r1", content="Hm.")
    fragment = line("assistant.reasoning_delta", reasoningId="r1", deltaContent="Hm.")
    for lines in (
        (fragment, delta("Hi."), message("Hi.", reasoningText="Hm."), thought),
        (message("Hi.", reasoningText="Hm."), thought),
        (thought, message("Hi.", reasoningText="Hm.")),
        (thought, message("Hi.")),
    ):
        found = [e for e in events(*lines, result()) if isinstance(e, Text)]
        assert [(e.tag, e.text) for e in found] == [(Tag.THINK, "Hm."), (Tag.AI, "Hi.")]


def test_a_subagents_words_do_not_count_or_mix_with_the_agents() -> None:
    own = [delta("My "), delta("words."), message("My words.")]
    others = [delta(c, "m9", agent="sub") for c in MARKER] + [message(MARKER, "m9", agent="sub")]
    older = message(MARKER, "m8", parentToolCallId="c7")
    found = events(own[0], *others[:5], own[1], *others[5:], own[2], older, result())
    assert texts(found) == ["My words."]
    assert texts(found, Tag.SYS) == [MARKER, MARKER]
    assert not verdict(*own, *others, older, result())["completed"]


def test_an_unknown_type_is_reported_whole() -> None:
    new = line("session.astonished", why="x")
    assert metas(events(new, result()), "unknown") == [{"kind": "unknown", "line": new}]


def test_a_field_of_an_unexpected_type_costs_only_that_field() -> None:
    found = events(
        {"type": "assistant.message", "data": None, "sessionId": "s"},
        {"type": 5, "data": {}},
        message(["no", "words"]),
        delta({"a": 1}),
        delta("x", message=["m"], parentToolCallId=[1]),  # type: ignore[arg-type]
        start(call=[1], name=None, arguments="ls"),  # type: ignore[arg-type]
        done(call=None, success="yes", result=7),  # type: ignore[arg-type]
        done("c9", success=True, result="plain"),
        line("session.error"),
        line("abort", reason=3),
        {"type": "result", "exitCode": "one"},
    )
    assert [e.tool.name for e in found if isinstance(e, ToolStart)] == ["tool", "tool"]
    assert ends(found) == [ToolStatus.UNKNOWN, ToolStatus.OK]
    assert [e.text for e in found if isinstance(e, ToolOutput)] == ["plain"]
    assert [r["ok"] for r in metas(found, "result")] == [False]


def test_streamed_output_is_shown_by_the_line_and_only_once() -> None:
    def piece(text: str) -> dict[str, Any]:
        return line("tool.shell_output", toolCallId="c1", text=text)

    end = done(success=True, result={"content": "one\ntwo\nthree\n<shellId: 0 completed with exit code 0>"})
    found = events(start(), piece("one\ntw"), piece("o\nthr"), piece("ee"), end, result())
    assert [e.text for e in found if isinstance(e, ToolOutput)] == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"success": True, "shellExecution": {"exitCode": 3}}, ToolStatus.FAIL),
        ({"success": True, "result": {"content": "x\n<exited with exit code 3>"}}, ToolStatus.FAIL),
        ({"success": True, "result": {"content": "<exited with exit code 3>\nquoted"}}, ToolStatus.OK),
        ({"success": True}, ToolStatus.OK),
        ({"error": {"message": "no"}}, ToolStatus.FAIL),
        ({}, ToolStatus.UNKNOWN),
    ],
)
def test_the_status_of_a_call(fields: dict[str, Any], status: ToolStatus) -> None:
    assert ends(events(start(), done(**fields), result())) == [status]


def test_the_duration_of_a_call_is_the_time_between_its_two_lines() -> None:
    found = events(start(), done(success=True, at="2026-11-15T18:40:45.150Z"), result())
    assert [e.tool.duration_ms for e in found if isinstance(e, ToolEnd)] == [2001]


def test_a_call_that_has_ended_neither_starts_nor_ends_again() -> None:
    found = events(start(), done(success=True), done(success=False), start(), done(success=True))
    assert [type(event) for event in found if isinstance(event, ToolStart | ToolEnd)] == [ToolStart, ToolEnd]


def test_a_refused_call_needs_a_person_unless_its_tool_is_allowed_later() -> None:
    no = [start(), done(success=False, error={"message": "Permission denied", "code": "denied"})]
    yes = [start("c2"), done("c2", success=True)]
    refused = verdict(*no, message(MARKER), result())
    assert (refused["outcome"], refused["completed"]) == ("permission_denied", False)
    assert verdict(*no, *yes, message(MARKER), result())["completed"]


def test_no_result_is_a_failure_even_with_exit_code_0() -> None:
    assert verdict(message(MARKER))["outcome"] == "failed"
    assert verdict(message(MARKER), json.dumps(result())[:30])["outcome"] == "failed"


def test_a_good_result_after_an_abort_is_a_failure() -> None:
    assert verdict(message(MARKER), line("abort", reason="user_initiated"), result())["outcome"] == "failed"


def test_the_second_of_two_results_counts() -> None:
    assert len(metas(events(result(), result()), "result")) == 2
    assert verdict(message("x"), result(), result(1))["outcome"] == "failed"


def test_a_run_that_ends_during_a_retry_fails_with_its_cause() -> None:
    failure = line("model.call_failure", statusCode=503, errorMessage='{"message":"busy"}', retryAttempt=0)
    retry = line("assistant.turn_retry", reason="api_error")
    assert verdict(failure, retry, code=-9)["outcome"] == "overloaded"
    (judged,) = metas(events(failure, retry), "retry")
    assert (judged["message"], judged["attempt"]) == ("busy", 1)
    assert verdict(failure, retry, message(MARKER), result())["completed"]
    # a version that reports it only as text
    words = line("session.info", infoType="model_retry", message="Retrying...")
    assert len(metas(events(failure, words), "retry")) == 1


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({"errorType": "authentication", "message": "no"}, "auth"),
        ({"errorType": "quota", "message": "You have used it all"}, "quota"),
        ({"errorType": "rate_limit", "message": "slower, please"}, "rate_limited"),
        ({"errorType": "rate_limit", "message": "monthly limit reached", "statusCode": 429}, "quota"),
        ({"errorType": "query", "message": "The prompt exceeds the model's prompt budget"}, "context_exceeded"),
        ({"errorType": "query", "message": "x", "statusCode": 502}, "overloaded"),
        ({"errorType": "query", "message": "retried 429 times Last error: 400 bad"}, "failed"),
    ],
)
def test_errors_are_classified(fields: dict[str, Any], outcome: str) -> None:
    assert verdict(line("session.error", **fields), result(1), code=1)["outcome"] == outcome


def test_an_overloaded_provider_may_say_how_long_to_wait() -> None:
    error = line("session.error", errorType="query", message="503 busy, retry in 5s", statusCode=503)
    judged = verdict(error, result(1), code=1)
    assert (judged["outcome"], judged["retry_after"]) == ("overloaded", 5)


def test_a_question_waits_for_a_person_until_it_is_answered() -> None:
    asked = line("user_input.requested", question="Which one?")
    assert verdict(asked, result(1), code=1)["outcome"] == "question"
    assert verdict(asked, line("user_input.completed"), message(MARKER), result())["completed"]


def test_tokens_reported_in_several_places_are_counted_once() -> None:
    call = line("assistant.usage", model="m", inputTokens=10, outputTokens=2, cacheReadTokens=4)
    total = {"m": {"usage": {"inputTokens": 20, "outputTokens": 4, "cacheReadTokens": 8}}}
    shutdown = line("session.shutdown", modelMetrics=total)
    said = message("x", outputTokens=2)
    with_calls = verdict(said, call, said, call, shutdown, result())["usage"]
    assert with_calls == {
        "prompt_tokens": 20,
        "completion_tokens": 4,
        "cached_tokens": 8,
        "total_tokens": 24,
        "model": "m",
    }
    assert verdict(said, said, shutdown, result())["usage"] == with_calls
    assert verdict(said, said, result())["usage"]["completion_tokens"] == 4
    assert not [e for e in events(message("x"), result()) if isinstance(e, UsageEvent)]


def test_the_session_is_reported_once_and_early() -> None:
    first = line("session.start", sessionId="s-1", selectedModel="m")
    assert metas(events(first, result()), "session") == [{"kind": "session", "session_id": "s-1", "model": "m"}]


def test_an_autopilot_message_is_not_the_agents_final_message() -> None:
    go_on = line("user.message", content="", transformedContent="Go on.", source="autopilot")
    assert not verdict(message(MARKER), go_on, message("Not yet.", "m2"), result())["completed"]


def test_a_truncated_first_line_is_not_an_answer() -> None:
    cut = json.dumps(result(), separators=(",", ":"))[:40]
    assert verdict(cut)["outcome"] == "failed"
    assert verdict(cut, "and words after it", MARKER)["completed"]


def test_json_in_a_text_answer_is_text() -> None:
    lines = ['{"type": "result", "exitCode": 0}', "{", '  "type": "module"', "}", '[{"a": 1}]', MARKER]
    assert "\n".join(texts(events(*lines))).split("\n") == lines
    assert verdict(*lines)["completed"]


def test_escape_sequences_around_json_are_ignored() -> None:
    lines = ["\x1b[?25l" + json.dumps(message(MARKER)) + "\r", json.dumps(result()) + "\r\x1b[?25h"]
    assert verdict(*lines)["completed"]


def test_the_summary_at_the_end_is_not_the_agents_text() -> None:
    tokens = "Tokens     ↑ 1.2m (900k cached) • ↓ 12.5k\r"
    seen = verdict(f"{MARKER}\r", "\r", "Changes    +1 -0\r", tokens, "Resume     copilot --resume=abc\r")
    assert (seen["completed"], seen["session_id"]) == (True, "abc")
    usage = seen["usage"]
    assert (usage["prompt_tokens"], usage["cached_tokens"], usage["completion_tokens"]) == (1_200_000, 900_000, 12_500)


def test_errors_that_the_agent_quotes_are_not_errors() -> None:
    assert verdict("Error: 401 was what I saw.", "Request failed: quota", MARKER)["completed"]
    assert verdict(message(f"Error: 401\nFailed to get response\n{MARKER}"), result())["completed"]
    assert verdict("", stderr="Error: 402 You have no quota\n", code=1)["outcome"] == "quota"


def test_remarks_on_stderr_do_not_fail_the_run() -> None:
    passing = "Error: could not write the log\nFailed to persist session events: Error: ENOSPC\n"
    assert verdict(MARKER, stderr=passing)["completed"]
    limit = 'Model call failed: {"message":"Rate limit exceeded.","code":"rate_limited"} (Request ID: F5BA:D04FD)\n'
    assert verdict("So far.", stderr=limit, code=1)["outcome"] == "rate_limited"


def test_the_summary_of_versions_before_1_0() -> None:
    lines = [
        "✔ Read app.py",
        "   └ 35 lines read",
        "",
        MARKER,
        "",
        "Total usage est:        1 Premium request",
        "Total duration (API):  9.5s",
        "Breakdown by AI model:",
        " claude-opus-4.6         614.6k in, 12.0k out, 571.2k cached (Est. 1 Premium request)",
        "    claude-haiku-4.5     422 input, 110 output, 37 cache read, 5 cache write (Est. 0 Premium requests)",
    ]
    seen = verdict(*lines)
    assert seen["completed"]
    assert texts(events(*lines)) == ["", MARKER, ""]
    usage = seen["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (614_600 + 422, 12_000 + 110)
    assert (usage["cached_tokens"], usage["cache_write_tokens"]) == (571_200 + 37, 5)


@given(st.lists(damaged(REAL) | text_line(), max_size=12))
def test_damaged_lines_never_raise_and_every_event_can_be_encoded(lines: list[str]) -> None:
    for event in events(*lines, stderr="\n".join(lines)):
        decode(encode(event))


@given(st.lists(words_line(), min_size=1, max_size=10), st.booleans())
def test_no_line_of_text_is_lost(lines: list[str], structured: bool) -> None:
    found = events(*([result()] if structured else []), *lines)
    assert [e.text for e in found if isinstance(e, Text)] == lines


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_whole_message_that_differs_from_its_fragments_is_never_cut(*, interrupted: bool) -> None:
    signal = "<<<RALPHEX:ALL_TASKS_DONE>>>"
    between = [delta("meanwhile", "m2")] if interrupted else []
    found = events_of("copilot", delta("I will check everything"), *between, message(signal), result())
    assert texts(found)[-1] == signal


def test_a_copy_that_is_trimmed_is_still_a_copy() -> None:
    found = events_of("copilot", delta("all "), delta("done.\n\n"), message("all done."), result())
    assert "\n".join(texts(found)).split() == ["all", "done."]


def test_a_message_may_consist_of_blocks() -> None:
    assert texts(events_of("copilot", message([{"type": "text", "text": "done"}]), result())) == ["done"]
