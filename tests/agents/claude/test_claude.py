"""Claude Code, beyond the recordings: fragments, wrappers that use its format, limits, usage, tools."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.claude.messages import MARKER, assistant, delta, metas, result, run, said, texts, verdict
from ralph.agents.claude.adapter import ClaudeAdapter
from ralph.transcripts.events import (
    Meta,
    Tag,
    Text,
    ToolEnd,
    ToolOutput,
    ToolStart,
)

# -- wrappers that print the provider's events without an envelope


def test_a_wrapper_may_print_deltas_and_an_empty_result() -> None:
    seen = verdict(delta("fixed the bug\n"), delta(f"{MARKER}\n"), {"type": "result", "result": ""})
    assert (seen["outcome"], seen["completed"]) == ("ok", True)


def test_a_marker_split_over_deltas_is_one_line() -> None:
    events = run(delta("All done.\n<promise>COM"), delta(""), delta("PLETE</prom"), delta("ise>"), result())
    assert texts(events, Tag.AI) == ["All done.", MARKER]


def test_words_are_shown_as_soon_as_their_line_is_complete() -> None:
    adapter = ClaudeAdapter()
    assert adapter.feed(json.dumps(delta("one\ntw"))) == [Text(Tag.AI, "one")]
    assert adapter.feed(json.dumps(delta("o\n"))) == [Text(Tag.AI, "two")]


@pytest.mark.parametrize("form", [f"Done.\n{MARKER}", {"output": f"Done.\n{MARKER}"}])
def test_new_words_in_a_result_are_shown(form: Any) -> None:
    seen = verdict({"type": "result", "result": form})
    assert (seen["outcome"], seen["completed"]) == ("ok", True)


@pytest.mark.parametrize("form", [f"Done.\n{MARKER}", {"output": f"Done. {MARKER}\n"}])
def test_a_result_that_repeats_the_last_words_is_not_shown_again(form: Any) -> None:
    events = run(delta("Working.\n"), delta(f"Done.\n{MARKER}"), {"type": "result", "result": form})
    assert "\n".join(texts(events, Tag.AI)) == f"Working.\nDone.\n{MARKER}"


def test_new_words_in_a_result_can_complete_the_run() -> None:
    assert verdict(delta("Working.\n"), {"type": "result", "result": MARKER})["completed"] is True


def test_a_whole_message_in_message_stop_is_shown_once() -> None:
    stop = {"type": "message_stop", "message": {"content": [said("Hello there.")]}}
    assert texts(run(delta("Hello "), delta("there."), stop), Tag.AI) == ["Hello there."]
    assert texts(run(stop), Tag.AI) == ["Hello there."]


def test_a_bare_stream_may_end_with_message_stop() -> None:
    assert verdict(delta(f"{MARKER}\n"), {"type": "message_stop"})["completed"] is True


def test_a_run_may_have_two_results() -> None:
    events = run(delta("a\n"), result("a"), delta("b\n"), result("b"))
    assert len(metas(events, "result")) == 2
    assert texts(events, Tag.AI) == ["a", "b"]


def test_an_error_result_with_exit_code_0_is_a_failure() -> None:
    wrong = {"type": "result", "is_error": True, "result": "codex: 503 service unavailable"}
    assert verdict(delta(f"{MARKER}\n"), wrong)["outcome"] == "overloaded"
    assert verdict({"type": "result", "result": ""})["outcome"] == "empty"


# -- fragments and their full copies


def stream(event: dict[str, Any]) -> dict[str, Any]:
    return {"type": "stream_event", "event": event, "parent_tool_use_id": None}


@pytest.mark.parametrize("full_first", [True, False])
def test_the_full_message_after_its_fragments_is_not_shown_again(full_first: bool) -> None:
    full = assistant(said("One.\nTwo."))
    stop = stream({"type": "content_block_stop", "index": 0})
    ends = [full, stop] if full_first else [stop, full]
    events = run(stream(delta("One.\nT")), stream(delta("wo.")), *ends, result("One.\nTwo."))
    assert texts(events, Tag.AI) == ["One.", "Two."]


def test_the_full_message_adds_what_the_fragments_left_out() -> None:
    events = run(stream(delta("One.\nT")), assistant(said("One.\nTwo.\nThree.")), result("One.\nTwo.\nThree."))
    assert "\n".join(texts(events, Tag.AI)) == "One.\nTwo.\nThree."


def test_the_same_words_in_two_messages_are_shown_twice() -> None:
    start = stream({"type": "message_start", "message": {"id": "m"}})
    turn = [start, stream(delta("Again.")), stream({"type": "content_block_stop"}), assistant(said("Again."))]
    assert texts(run(*turn, *turn, result("Again.")), Tag.AI) == ["Again.", "Again."]
    assert texts(run(assistant(said("Again.")), assistant(said("Again.")), result("Again.")), Tag.AI) == ["Again."] * 2


def test_a_streamed_tool_call_starts_with_its_complete_input() -> None:
    block = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}
    part = {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": '{"command":'}}
    rest = {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": '"ls"}'}}
    stop = {"type": "content_block_stop"}
    once = run({"type": "content_block_start", "content_block": block}, part, rest, stop, {"type": "message_stop"})
    [start] = [e for e in once if isinstance(e, ToolStart)]
    assert (start.tool.name, start.tool.input) == ("Bash", {"command": "ls"})


# -- who speaks


def test_subagents_do_not_complete_a_run_but_their_tools_are_shown() -> None:
    inner = {"type": "tool_use", "id": "t2", "name": "Read", "input": {"file_path": "a"}}
    outer = {"type": "tool_use", "id": "t1", "name": "Task", "input": {}}
    lines = [
        assistant(outer),
        {"type": "user", "message": {"content": "do it"}, "parent_tool_use_id": "t1"},
        assistant(said(MARKER), inner, parent_tool_use_id="t1"),
        {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t2", "content": "x"}]}},
        {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": "y"}]}},
        assistant(said("The helper says that it is done.")),
        result("The helper says that it is done."),
    ]
    events = run(*lines)
    assert texts(events, Tag.AI) == ["The helper says that it is done."]
    assert texts(events, Tag.SYS) == ["do it", MARKER]
    seen = verdict(*lines)
    assert (seen["completed"], seen["tools"]) == (False, {"started": 2, "ok": 2, "fail": 0, "unknown": 0})


def test_an_echoed_prompt_does_not_complete_the_run() -> None:
    echo = {"type": "user", "message": {"role": "user", "content": f"Print {MARKER}\n{MARKER}"}, "isReplay": True}
    events = run(echo, assistant(said("No.")), result("No."))
    assert texts(events, Tag.PROMPT) == [f"Print {MARKER}\n{MARKER}"]
    assert verdict(echo, assistant(said("No.")), result("No."))["completed"] is False


@pytest.mark.parametrize(
    ("text", "name", "outcome"),
    [
        ("API Error: 401 Invalid authentication credentials", "authentication_failed", "auth"),
        ("Not logged in · Please run /login", "authentication_failed", "auth"),
        ("API Error: 529 Overloaded", "unknown", "overloaded"),
        ("Credit balance is too low", "billing_error", "quota"),
        ('API Error: 400 {"error":{"message":"Your credit balance is too low to access the API"}}', "unknown", "quota"),
        ("Prompt is too long", "invalid_request", "context_exceeded"),
        ("API Error: Connection error.", "unknown", "failed"),
    ],
)
def test_a_message_from_the_cli_in_the_agents_place_decides_the_outcome(text: str, name: str, outcome: str) -> None:
    synthetic = {"type": "assistant", "error": name, "message": {"model": "<synthetic>", "content": [said(text)]}}
    wrong = result(text, is_error=True)
    events = run(synthetic, wrong)
    assert texts(events, Tag.AI) == []
    assert texts(events, Tag.SYS) == [text]
    assert verdict(synthetic, wrong, exit_code=1)["outcome"] == outcome
    assert verdict(synthetic, exit_code=0)["outcome"] == outcome, "without the result, too"


# -- limits, denials, retries


def test_the_reset_time_of_a_subscription_limit_comes_from_its_event() -> None:
    rejected = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 1784079000}}
    text = "You've hit your limit · resets 2pm (Asia/Shanghai)"
    synthetic = {
        "type": "assistant",
        "error": "rate_limit",
        "message": {"model": "<synthetic>", "content": [said(text)]},
    }
    seen = verdict(rejected, synthetic, result(text, is_error=True), exit_code=1)
    assert (seen["outcome"], seen["resets_at"]) == ("rate_limited", 1784079000)


def test_a_limit_that_is_not_reached_is_ignored() -> None:
    allowed = {"type": "rate_limit_event", "rate_limit_info": {"status": "allowed_warning", "resetsAt": 1784079000}}
    seen = verdict(allowed, assistant(said(MARKER)), result(MARKER))
    assert (seen["completed"], seen["resets_at"]) == (True, None)


@pytest.mark.parametrize(
    ("text", "timestamp", "resets"),
    [
        ("Claude AI usage limit reached|1784079000", None, 1784079000),
        # 14:00 in Shanghai is 06:00 UTC: on the day of the message, or on the next day
        ("5-hour limit reached ∙ resets 2pm (Asia/Shanghai)", "2026-07-15T01:00:00Z", 1784095200),
        ("5-hour limit reached ∙ resets 2pm (Asia/Shanghai)", "2026-07-15T07:00:00Z", 1784181600),
        ("You've hit your limit · resets Jul 17, 2:30pm (UTC)", "2026-07-15T07:00:00Z", 1784298600),
        ("You've hit your limit · resets 2pm (Nowhere/Land)", "2026-07-15T07:00:00Z", None),
        ("You've hit your limit · resets 2pm (UTC)", None, None),
    ],
)
def test_the_reset_time_is_read_from_the_message_if_it_is_unambiguous(
    text: str, timestamp: str | None, resets: int | None
) -> None:
    synthetic = {
        "type": "assistant",
        "message": {"model": "<synthetic>", "content": [said(text)]},
        "timestamp": timestamp,
    }
    seen = verdict(synthetic, result(text, is_error=True), exit_code=1)
    assert (seen["outcome"], seen["resets_at"]) == ("rate_limited", resets)


def test_an_unanswered_question_is_the_outcome() -> None:
    asked = [{"tool_name": "AskUserQuestion", "tool_use_id": "t1", "tool_input": {}}]
    assert verdict(assistant(said("Which?")), result("Which?", permission_denials=asked))["outcome"] == "question"


def test_a_retry_decides_the_outcome_only_without_later_progress() -> None:
    retry = {"type": "system", "subtype": "api_retry", "attempt": 1, "error_status": 529, "error": "overloaded"}
    assert verdict(retry, assistant(said(MARKER)), result(MARKER))["completed"] is True
    assert verdict(retry, assistant(said("Going on.")), exit_code=1)["outcome"] == "failed"
    assert verdict(retry, exit_code=1)["outcome"] == "overloaded"


@pytest.mark.parametrize("subtype", ["error_during_execution", "error_max_turns", "error_max_budget_usd"])
def test_an_error_subtype_is_a_failure_even_if_is_error_is_false(subtype: str) -> None:
    assert (
        verdict(assistant(said(MARKER)), {"type": "result", "subtype": subtype, "is_error": False})["outcome"]
        == "failed"
    )


def test_the_agents_words_do_not_classify_a_failure() -> None:
    words = "The server answers 401 Unauthorized: rate limit."
    wrong = result(words, is_error=True, subtype="error_during_execution")
    assert verdict(assistant(said(words)), wrong, exit_code=1)["outcome"] == "failed"


def test_output_without_a_result_is_a_failure() -> None:
    assert verdict(assistant(said(MARKER)))["outcome"] == "failed"
    assert verdict(assistant(said(MARKER)), '{"type":"result","subtype":"succ')["outcome"] == "failed"


# -- usage


def usage(fresh: int, output: int) -> dict[str, int]:
    return {
        "input_tokens": fresh,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 10,
        "output_tokens": output,
    }


def test_a_repeated_result_counts_once_and_a_cumulative_result_counts_its_increase() -> None:
    first = result("a", usage=usage(50, 5), total_cost_usd=0.5)
    second = result("a", usage=usage(80, 9), total_cost_usd=0.75)
    seen = verdict(assistant(said("a")), first, first, second)["usage"]
    assert (seen["prompt_tokens"], seen["completion_tokens"], seen["cost_usd"]) == (190, 9, 0.75)


def test_the_counts_of_a_second_turn_are_added() -> None:
    def turn(name: str, fresh: int) -> dict[str, Any]:
        return {"type": "assistant", "message": {"id": name, "content": [said(name)], "usage": usage(fresh, 1)}}

    seen = verdict(turn("a", 50), result("a", usage=usage(50, 5)), turn("b", 60), result("b", usage=usage(60, 6)))
    assert (seen["usage"]["prompt_tokens"], seen["usage"]["completion_tokens"]) == (160 + 170, 11)


def test_messages_are_added_up_only_if_the_result_has_no_usage() -> None:
    lines = [
        {"type": "message_start", "message": {"id": "m1", "model": "claude-x", "usage": usage(50, 1)}},
        delta("Hello"),
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    ]
    seen = verdict(*lines, {"type": "result", "result": "Hello"})["usage"]
    assert (seen["prompt_tokens"], seen["completion_tokens"], seen["model"]) == (160, 7, "claude-x")
    assert verdict(assistant(said("x")), exit_code=1)["usage"] == {}


# -- tools


def test_a_repeated_call_starts_and_ends_once() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
    end = {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a"}]}}
    kinds = [type(e) for e in run(assistant(call), assistant(call), end, end, result()) if not isinstance(e, Meta)]
    assert kinds == [ToolStart, ToolOutput, ToolEnd]


def test_a_tool_result_without_a_call_starts_one() -> None:
    block = {"type": "tool_result", "tool_use_id": "t9", "is_error": True, "content": [said("a"), {"type": "image"}]}
    events = run({"type": "user", "message": {"content": [block]}}, result())
    assert [type(e) for e in events[:3]] == [ToolStart, ToolOutput, ToolEnd]
    assert isinstance(events[1], ToolOutput)
    assert events[1].text == "a\n[image]"
