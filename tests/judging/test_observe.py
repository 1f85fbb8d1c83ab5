"""The summary of an iteration's events."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.judging.observe import Observation
from ralph.judging.signals import Markers, Signal
from ralph.judging.usage import add_usage, known_total
from ralph.transcripts import meta
from ralph.transcripts.events import (
    Meta,
    Tag,
    Text,
    ToolCall,
    ToolEnd,
    ToolOutput,
    ToolRef,
    ToolResult,
    ToolStart,
    ToolStatus,
    TranscriptEvent,
    Usage,
    UsageEvent,
)


def observe(*events: TranscriptEvent) -> Observation:
    seen = Observation(Markers())
    seen.feed(list(events))
    return seen


def test_tools_are_counted_by_how_they_ended() -> None:
    seen = observe(
        *(ToolStart(ToolCall(str(n), "sh" if n < 3 else "edit")) for n in range(5)),
        ToolEnd(ToolResult("0", ToolStatus.OK, 10)),
        ToolEnd(ToolResult("1", ToolStatus.FAIL, 5)),
        ToolEnd(ToolResult("2", ToolStatus.UNKNOWN)),
    )
    assert (seen.tools.started, seen.tools.ok, seen.tools.fail, seen.tools.unknown) == (5, 1, 1, 1)
    assert dict(seen.tool_names) == {"sh": 3, "edit": 2}
    assert (seen.tool_ms, list(seen.open_tools)) == (15, ["3", "4"])


def test_the_end_of_a_call_is_matched_by_its_id() -> None:
    """A call counts once, however often its start and its end are reported, and each end belongs to a call."""
    start, end = ToolStart(ToolCall("a", "sh")), ToolEnd(ToolResult("a", ToolStatus.OK, 10))
    seen = observe(start, start, ToolStart(ToolCall("b", "sh")), end, end)
    assert (seen.tools.started, seen.tools.ok, list(seen.open_tools), seen.tool_ms) == (2, 1, ["b"], 10)
    seen.feed([ToolEnd(ToolResult("c", ToolStatus.FAIL, name="edit"))])  # reported only when it ended
    assert (seen.tools.started, seen.tools.ok, seen.tools.fail, list(seen.open_tools)) == (3, 1, 1, ["b"])
    assert dict(seen.tool_names) == {"sh": 2, "edit": 1}
    seen.feed([start, end])  # the same id again: another call
    assert (seen.tools.started, seen.tools.ok) == (4, 2)


def test_usage_adds_up_and_unknown_stays_unknown() -> None:
    seen = observe(
        UsageEvent(Usage(prompt_tokens=10, completion_tokens=1, cost_usd=0.5, model="a")),
        UsageEvent(Usage(prompt_tokens=20, cached_tokens=7)),
    )
    assert seen.usage == Usage(30, 1, 31, "a", 7, None, None, 0.5)
    assert observe().usage == Usage()
    assert not observe().usage_seen


@pytest.mark.parametrize(
    ("usage", "total"),
    [
        (Usage(), None),
        (Usage(total_tokens=7), 7),
        (Usage(prompt_tokens=3), 3),
        (Usage(prompt_tokens=3, completion_tokens=4), 7),
        (Usage(prompt_tokens=3, completion_tokens=4, total_tokens=9), 9),
        (Usage(cached_tokens=5), None),
        (Usage(prompt_tokens=0), 0),
    ],
)
def test_all_tokens(usage: Usage, total: int | None) -> None:
    assert known_total(usage) == total


def test_totals_given_and_computed_add_up() -> None:
    both = add_usage(Usage(prompt_tokens=1, completion_tokens=1), Usage(total_tokens=10))
    assert known_total(add_usage(both, Usage(prompt_tokens=3))) == 15


def test_the_last_session_id_counts() -> None:
    assert observe(meta.session("a"), meta.session("b")).session_id == "b"
    assert observe(Meta({"kind": "session", "session_id": 5})).session_id is None


def test_the_plan_is_the_first_line_of_the_first_thought() -> None:
    assert observe(Text(Tag.THINK, "\n Plan: a\nb"), Text(Tag.THINK, "other")).plan == "Plan: a"


def test_a_rate_limit_keeps_its_time() -> None:
    assert observe(meta.rate_limit(1234.0)).resets_at == 1234.0
    assert observe(Meta({"kind": "rate_limit", "resets_at": "soon"})).resets_at is None


def test_a_tool_separates_two_messages() -> None:
    mark = Text(Tag.AI, "<promise>COMPLETE</promise>")
    tool = (ToolStart(ToolCall("1", "sh")), ToolOutput(ToolRef("1"), "x"), ToolEnd(ToolResult("1", ToolStatus.OK)))
    later = Text(Tag.AI, "one more thing")
    assert observe(mark, *tool, later).message.claim(structured=True).signal is Signal.NONE
    assert observe(mark, later).message.claim(structured=True).signal is Signal.COMPLETE
    assert observe(later, *tool, mark).message.claim(structured=True).signal is Signal.COMPLETE


@pytest.mark.parametrize("kind", ["session", "error", "result", "rate_limit", "parse_error", "unknown", None, 5])
def test_meta_events_without_their_fields_do_no_harm(kind: object) -> None:
    observe(Meta({"kind": kind}))


def test_an_endless_message_does_not_fill_the_memory() -> None:
    seen = Observation(Markers())
    for _ in range(2000):
        seen.feed([Text(Tag.AI, "word " * 200), ToolOutput(ToolRef("1"), "x" * 1000)])
    size = sum(sys.getsizeof(v) for v in vars(seen).values()) + sum(
        sys.getsizeof(v) for v in vars(seen.message).values()
    )
    assert size < 50_000


def test_the_earlier_usage_of_a_resumed_session_is_not_counted_again() -> None:
    seen = Observation(Markers(), before=Usage(prompt_tokens=2600, completion_tokens=165, cached_tokens=1024))
    seen.feed([UsageEvent(Usage(prompt_tokens=5200, completion_tokens=330, cached_tokens=2048, model="m"))])
    assert seen.usage == Usage(
        prompt_tokens=2600, completion_tokens=165, total_tokens=2765, cached_tokens=1024, model="m"
    )
    assert seen.reported.prompt_tokens == 5200


def test_a_resumed_session_that_reports_less_than_before_reports_only_new_usage() -> None:
    seen = Observation(Markers(), before=Usage(prompt_tokens=2600, completion_tokens=165))
    seen.feed([UsageEvent(Usage(prompt_tokens=1200, completion_tokens=105))])
    assert seen.usage.prompt_tokens == 1200


def test_the_answer_is_the_same_however_its_words_are_split() -> None:
    whole = observe(Text(Tag.AI, "I cannot do it"))
    pieces = observe(Text(Tag.AI, "I cannot"), Text(Tag.THINK, "hm"), Text(Tag.AI, " do it"))
    assert whole.answer == pieces.answer is not None


def test_the_answer_is_what_follows_the_last_tool() -> None:
    tool = ToolStart(ToolCall("1", "ls"))
    direct = observe(Text(Tag.AI, "done"))
    after = observe(Text(Tag.AI, "let me see"), tool, Text(Tag.AI, "done"))
    other = observe(Text(Tag.AI, "done"), tool, Text(Tag.AI, "not yet"))
    assert direct.answer == after.answer != other.answer


def test_without_words_there_is_no_answer() -> None:
    assert observe(Text(Tag.AI, "  \n"), Text(Tag.THINK, "hm")).answer is None


LINES = st.sampled_from(
    (
        *("", " ", "word", "LOOP_COMPLETE", "  <promise>COMPLETE</promise>", "<promise>REPLAN</promise>", "x" * 300),
        *("```", "~~~", "```sh", "I will not say LOOP_COMPLETE yet", "word\nLOOP_COMPLETE\n", "\n", "\ud800"),
    )
)
EVENTS = st.one_of(
    st.builds(Text, st.sampled_from([Tag.AI, Tag.AI, Tag.AI, Tag.THINK, Tag.SYS, Tag.USER]), LINES),
    st.just(ToolStart(ToolCall("1", "Bash"))),
    st.just(ToolOutput(ToolRef("1"), "LOOP_COMPLETE")),
    st.just(ToolEnd(ToolResult("1", ToolStatus.OK))),
)


@given(st.lists(EVENTS, max_size=12))
def test_events_one_by_one_and_all_at_once_give_the_same_result(events: list[TranscriptEvent]) -> None:
    single, together = Observation(Markers()), Observation(Markers())
    for event in events:
        single.feed([event])
    together.feed(events)
    for name in ("spoke", "answer", "plan", "tools"):
        assert getattr(single, name) == getattr(together, name), name
    for structured in (True, False):
        assert (
            single.message.claim(structured=structured).signal is together.message.claim(structured=structured).signal
        )


def test_interim_usage_counts_until_the_agent_reports_its_own_total() -> None:
    first = UsageEvent(Usage(prompt_tokens=100, completion_tokens=5, model="a", interim=True))
    second = UsageEvent(Usage(prompt_tokens=0, completion_tokens=20, model="a", interim=True))
    seen = observe(first, second)
    assert seen.usage == Usage(100, 25, 125, "a", at_least=True)
    seen.feed([UsageEvent(Usage(prompt_tokens=90, completion_tokens=20))])
    assert seen.usage == Usage(90, 20, 110)
    seen.feed([first])
    assert seen.usage == Usage(190, 25, 215, "a", at_least=True)
    seen.feed([UsageEvent(Usage(prompt_tokens=101, completion_tokens=7))])
    assert seen.usage == Usage(191, 27, 218)


def test_a_total_without_tokens_does_not_replace_the_tokens_that_were_seen() -> None:
    seen = observe(UsageEvent(Usage(prompt_tokens=100, completion_tokens=5, interim=True)))
    seen.feed([UsageEvent(Usage(cost_usd=0.5))])
    assert (known_total(seen.usage), seen.cost.usd) == (105, 0.5)


def test_a_resumed_session_repeats_what_it_reported_but_its_interim_usage_is_new() -> None:
    seen = Observation(Markers(), None, Usage(prompt_tokens=1000, completion_tokens=100))
    seen.feed([UsageEvent(Usage(prompt_tokens=50, completion_tokens=5, interim=True))])
    assert known_total(seen.usage) == 55
    assert known_total(seen.reported) == 1155  # what the next resume would repeat if the agent were killed now
    seen.feed([UsageEvent(Usage(prompt_tokens=1060, completion_tokens=106))])
    assert known_total(seen.usage) == 66
    assert known_total(seen.reported) == 1166


def test_the_cost_of_interim_usage_is_replaced_by_the_cost_that_the_agent_reports() -> None:
    prices = {"large": 2.0, "small": 0.5}
    seen = Observation(Markers(), lambda usage: prices.get(usage.model or ""))
    seen.feed(
        [UsageEvent(Usage(10, 1, model="large", interim=True)), UsageEvent(Usage(10, 1, model="small", interim=True))]
    )
    assert (seen.cost.usd, seen.cost.source, seen.cost.partly) == (2.5, "prices", False)
    seen.feed([UsageEvent(Usage(10, 1, model="new", interim=True))])
    assert (seen.cost.usd, seen.cost.partly) == (2.5, True)
    seen.feed([UsageEvent(Usage(30, 3, model="large", cost_usd=1.75))])
    assert (seen.cost.usd, seen.cost.source, seen.cost.partly) == (1.75, "reported", False)
