"""Adding up the usage of a run from its messages and results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.agents.claude.adapter import ClaudeAdapter
from ralph.judging.observe import Observation
from ralph.judging.signals import Markers
from ralph.judging.usage import known_total
from ralph.transcripts.events import UsageEvent
from ralph.transcripts.stream_json import usage as stream_usage
from ralph.transcripts.stream_json.usage import RunUsage

if TYPE_CHECKING:
    from ralph.transcripts.events import Usage

NAMES = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
WRONG = st.sampled_from([-1, True, "3", [], {}, None, 1 << 60])


def total(usage: RunUsage, value: dict[str, Any] | None = None) -> Usage:
    found = usage.result(value or {}, "m")
    assert found is not None
    return found


def counts(fresh: int, read: int, out: int) -> dict[str, int]:
    return {
        "input_tokens": fresh,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": 0,
        "output_tokens": out,
    }


# -- messages


def interim(usage: Usage) -> tuple[int | None, int | None]:
    assert usage.interim
    return usage.prompt_tokens, usage.completion_tokens


def test_each_line_reports_what_it_adds_to_its_message() -> None:
    """Repeated lines, lines that report less than before, and another message in between count nothing twice."""
    usage = RunUsage()
    lines = [("a", counts(10, 200, 1)), ("a", counts(10, 200, 1)), ("sub", counts(5, 0, 2)), ("a", counts(10, 200, 9))]
    lines += [("a", counts(10, 200, 1)), ("a", counts(10, 200, 12))]
    events = [event for name, used in lines for event in usage.message({"id": name, "usage": used}, name)]
    found = [event.usage for event in events if isinstance(event, UsageEvent)]
    assert [interim(each) for each in found] == [(210, 1), (5, 2), (0, 8), (0, 3)]
    assert [each.model for each in found] == ["a", "sub", "a", "a"]


def test_the_end_of_a_stream_counts_for_its_own_message() -> None:
    """The message of a subagent may come between the start and the end of the streamed one."""
    adapter = ClaudeAdapter()
    seen = Observation(Markers())

    def feed(value: dict[str, Any]) -> None:
        seen.feed(adapter.feed(msgspec.json.encode(value).decode()))

    start = {"id": "a", "model": "large", "usage": counts(100, 0, 1)}
    feed({"type": "stream_event", "session_id": "s", "event": {"type": "message_start", "message": start}})
    assert interim_total(seen) == 101
    sub = {"id": "b", "model": "small", "content": [], "usage": counts(30, 0, 40)}
    feed({"type": "assistant", "parent_tool_use_id": "t", "message": sub})
    assert interim_total(seen) == 171
    feed({"type": "stream_event", "event": {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 50}}})
    assert interim_total(seen) == 220
    feed({"type": "assistant", "message": {"id": "a", "model": "large", "content": [], "usage": counts(100, 0, 1)}})
    assert interim_total(seen) == 220
    feed({"type": "result", "subtype": "success", "result": "", "usage": counts(95, 0, 50)})
    assert (seen.usage.prompt_tokens, seen.usage.completion_tokens, seen.usage.at_least) == (130, 90, True)


@pytest.mark.parametrize(("reported", "prompt", "at_least"), [(100, 130, True), (130, 130, False), (140, 140, False)])
def test_subagents_count_whether_or_not_the_result_covers_them(reported: int, prompt: int, at_least: bool) -> None:
    usage = RunUsage()
    usage.message({"id": "a", "usage": counts(100, 0, 10)}, "large")
    usage.subagent({"id": "b", "usage": counts(30, 0, 1)}, "small")
    usage.subagent({"id": "b", "usage": counts(30, 0, 1)}, "small")
    found = total(usage, {"usage": counts(reported, 0, 20)})
    assert (found.prompt_tokens, found.completion_tokens, found.at_least) == (prompt, 20, at_least)
    again = total(usage, {"usage": counts(reported + 5, 0, 20)})  # no message came, so it goes on counting
    assert (again.prompt_tokens, again.at_least) == (5, False)


def interim_total(seen: Observation) -> int | None:
    assert seen.usage.at_least
    return known_total(seen.usage)


def test_a_later_line_of_a_message_replaces_its_counts() -> None:
    usage = RunUsage()
    usage.message({"id": "a", "usage": counts(10, 0, 1)}, None)
    usage.message({"id": "b", "usage": counts(20, 0, 2)}, None)
    usage.message({"id": "a", "usage": counts(10, 0, 5)}, None)
    found = total(usage)
    assert (found.prompt_tokens, found.completion_tokens) == (30, 7)


def test_the_end_of_a_streamed_message_keeps_the_counts_it_does_not_repeat() -> None:
    usage = RunUsage()
    usage.message({"id": "a", "usage": counts(10, 200, 1)}, None)
    usage.delta({"output_tokens": 7, "output_tokens_details": {"thinking_tokens": 3}}, "a", None)
    found = total(usage)
    assert (found.prompt_tokens, found.cached_tokens) == (210, 200)
    assert (found.completion_tokens, found.reasoning_tokens) == (7, 3)


@given(st.sampled_from(NAMES), WRONG)
def test_a_count_of_an_unexpected_type_costs_only_that_count(name: str, wrong: Any) -> None:
    usage = RunUsage()
    usage.message({"id": "a", "usage": {**counts(10, 200, 5), name: wrong}}, None)
    usage.message({"id": "b", "usage": counts(1, 2, 3)}, None)
    expected = {**dict.fromkeys(NAMES, 0), **counts(10, 200, 5), name: 0}
    found = total(usage)
    assert found.completion_tokens == expected["output_tokens"] + 3
    assert found.cached_tokens == expected["cache_read_input_tokens"] + 2
    fresh = expected["input_tokens"]
    assert found.prompt_tokens == (fresh + expected["cache_read_input_tokens"] if fresh else 0) + 3


def test_a_count_that_no_message_has_stays_unknown() -> None:
    usage = RunUsage()
    usage.message({"id": "a", "usage": {"output_tokens": 5}}, None)
    usage.message({"id": "b", "usage": {"output_tokens": 5}}, None)
    found = total(usage)
    assert (found.prompt_tokens, found.completion_tokens, found.cached_tokens) == (None, 10, None)


def test_a_long_run_keeps_few_messages_and_loses_no_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_usage, "_MOST_MESSAGES", 20)
    usage = RunUsage()
    for number in range(2500):
        usage.message({"id": f"m{number}", "usage": {"input_tokens": 1, "output_tokens": 1}}, None)
        # two agents at once: a line of an earlier message comes again
        usage.message({"id": f"m{max(0, number - 3)}", "usage": {"input_tokens": 1, "output_tokens": 2}}, None)
    assert len(usage._messages) <= 20
    found = total(usage)
    assert (found.prompt_tokens, found.completion_tokens) == (2500, 2 * 2497 + 3)


# -- results


def old_run(**reported: int) -> Usage:
    """Two messages of 100 and 300 prompt tokens, 200 of which were cached, and the result an old release reports."""
    usage = RunUsage(check_result=True)
    usage.message({"id": "a", "usage": counts(100, 0, 10)}, None)
    usage.message({"id": "b", "usage": counts(100, 200, 20)}, None)
    return total(usage, {"usage": counts(**reported), "total_cost_usd": 1.0})


def test_a_result_that_counts_every_prompt_twice_is_replaced_and_its_cost_is_unknown() -> None:
    """1.0.60 adds the counts at a message's start to those at its end. Today, both include the prompt."""
    found = old_run(fresh=400, read=400, out=32)
    assert (found.prompt_tokens, found.cached_tokens, found.completion_tokens) == (400, 200, 30)
    assert found.cost_usd is None


def test_a_result_that_reports_only_the_last_message_is_replaced() -> None:
    """1.0.100 does that. Its cost is the run's."""
    found = old_run(fresh=100, read=200, out=20)
    assert (found.prompt_tokens, found.cached_tokens, found.completion_tokens) == (400, 200, 30)
    assert found.cost_usd == 1.0


def test_a_result_that_reports_more_than_the_messages_is_kept() -> None:
    """A subagent that asks as much as the agent doubles the answers, too."""
    found = old_run(fresh=400, read=400, out=60)
    assert (found.prompt_tokens, found.completion_tokens, found.cost_usd) == (800, 60, 1.0)


@pytest.mark.parametrize(
    ("first", "second", "added"),
    [
        ({"total_cost_usd": 1.0}, {"total_cost_usd": 1.5}, 0.5),
        ({"total_cost_usd": 1.0}, {"total_cost_usd": 0.25}, 0.25),
        ({}, {"total_cost_usd": 3.0, "model_usage_since_last_result": {"m": {"costUSD": 0.75}}}, 0.75),
        ({}, {"total_cost_usd": 3.0, "model_usage_since_last_result": {"m": {"costUSD": 3.0}}}, 3.0),
    ],
)
def test_the_cost_of_a_result_is_what_it_adds(first: dict[str, Any], second: dict[str, Any], added: float) -> None:
    """`total_cost_usd` accumulates over turns; from 2.1.309, the cost since the last result is given as well."""
    usage = RunUsage()
    usage.result(first, "m")
    assert total(usage, second).cost_usd == added
