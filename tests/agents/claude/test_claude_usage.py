"""The tokens of a run, of which no line tells the sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ralph.transcripts.stream_json import usage as claude_usage
from ralph.transcripts.stream_json.usage import RunUsage

if TYPE_CHECKING:
    import pytest

    from ralph.transcripts.events import Usage


def test_many_messages_are_added_up_on_the_way_and_none_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claude_usage, "_MOST_MESSAGES", 1000)
    usage = RunUsage()
    for number in range(2500):
        counts = {"input_tokens": 1, "output_tokens": 2}
        usage.message({"id": f"m{number}", "usage": counts})
        usage.message({"id": f"m{number}", "usage": counts})
    assert len(usage._messages) <= 1000
    total = usage.result({}, "m")
    assert total is not None
    assert (total.prompt_tokens, total.completion_tokens) == (2500, 5000)


def _old_run(**total: int) -> Usage:
    """Two messages of 100 and 300 tokens, 200 of which were cached, and the result that a release makes of them."""
    usage = RunUsage()
    usage.may_be_old = True
    usage.message({"id": "a", "usage": _counts(100, 0, 10)})
    usage.message({"id": "b", "usage": _counts(100, 200, 20)})
    found = usage.result({"usage": _counts(**total), "total_cost_usd": 1.0}, "m")
    assert found is not None
    return found


def _counts(fresh: int, read: int, out: int) -> dict[str, int]:
    return {
        "input_tokens": fresh,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": 0,
        "output_tokens": out,
    }


def test_a_result_that_counts_every_prompt_twice_is_not_believed_and_neither_is_its_cost() -> None:
    """1.0.60 adds the counts at a message's start to those at its end, which have the prompt in both today."""
    found = _old_run(fresh=400, read=400, out=32)
    assert (found.prompt_tokens, found.cached_tokens, found.completion_tokens) == (400, 200, 30)
    assert found.cost_usd is None


def test_a_result_of_the_last_message_alone_is_not_the_runs() -> None:
    """1.0.100 does that; its cost is the run's."""
    found = _old_run(fresh=100, read=200, out=20)
    assert (found.prompt_tokens, found.cached_tokens, found.completion_tokens) == (400, 200, 30)
    assert found.cost_usd == 1.0


def test_a_result_of_more_than_was_shown_is_believed() -> None:
    """A subagent that asks as much as the agent doubles the answers, too."""
    found = _old_run(fresh=400, read=400, out=60)
    assert (found.prompt_tokens, found.completion_tokens, found.cost_usd) == (800, 60, 1.0)
