"""What a run costs, and where that number comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loop.conftest import ai, rtf1
from ralph.judging.costs import Cost, CostFrom, RunCosts
from ralph.transcripts.events import Usage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from loop.conftest import Ran

TOKENS = Usage(prompt_tokens=100, completion_tokens=10)
DONE = ai("<promise>COMPLETE</promise>")


def used(model: str | None, tokens: int = 1_000_000, **more: float) -> str:
    named = {"model": model} if model else {}
    return rtf1("usage", usage={"prompt_tokens": tokens, "completion_tokens": 0, **named, **more})


@pytest.fixture
def table(repo: Path) -> Path:
    """The model "one" costs a dollar for a million tokens."""
    path = repo.parent / f"{repo.name}-prices.toml"
    path.write_text("[one]\ninput = 1\noutput = 1\n")
    return path


def test_what_the_agent_reports_wins_over_the_table() -> None:
    cost = Cost(lambda _: 5.0)
    cost.add(TOKENS)
    assert (cost.usd, cost.source) == (5.0, CostFrom.PRICES)
    cost.add(Usage(cost_usd=0.25))
    cost.add(TOKENS)
    cost.add(Usage(cost_usd=0.25))
    assert (cost.usd, cost.source, cost.partly) == (0.5, CostFrom.REPORTED, False)


def test_without_a_price_the_cost_is_unknown_not_0() -> None:
    cost = Cost(lambda _: None)
    cost.add(TOKENS)
    assert (cost.usd, cost.source, cost.partly) == (None, None, True)
    assert Cost(None).usd is None


def test_iterations_are_counted_by_the_source_of_their_cost() -> None:
    costs = RunCosts()
    assert costs.describe(None, 0) == "unknown"
    for add in (Usage(cost_usd=1.0), TOKENS, None):
        cost = Cost(lambda _: 2.0)
        if add is not None:
            cost.add(add)
        costs = costs.plus(cost)
    assert costs.facts(3.0) == {"usd": 3.0, "at_least": True, "reported": 1, "by_prices": 1, "unknown": 1}
    how = "reported by the agent and by price table; unknown in 1 of 3 iterations"
    assert costs.describe(3.0, 3) == f"≥ $3.0000 ({how})"


def test_a_run_says_that_its_cost_comes_from_the_table(run_rtf1: Callable[..., Ran], table: Path) -> None:
    ran = run_rtf1(f"{used('one')}\n{DONE}", env={"RALPH_PRICES": str(table)})
    assert ran.end["cost"] == {"usd": 1.0, "reported": 0, "by_prices": 1, "unknown": 0}
    assert ran.end["summary"]["Cost"] == "$1.0000 (by price table)"
    (iteration,) = ran.iterations
    assert (iteration["usage"]["cost_usd"], iteration["cost_from"]) == (1.0, "prices")


def test_a_run_says_that_its_cost_was_reported(run_rtf1: Callable[..., Ran], table: Path) -> None:
    ran = run_rtf1(f"{used('one', cost_usd=0.5)}\n{DONE}", env={"RALPH_PRICES": str(table)})
    assert ran.end["summary"]["Cost"] == "$0.5000 (reported by the agent)"
    assert ran.iterations[0]["cost_from"] == "reported"


def test_two_models_have_two_prices(run_rtf1: Callable[..., Ran], table: Path) -> None:
    table.write_text(table.read_text() + "[two]\ninput = 2\noutput = 2\n")
    ran = run_rtf1(f"{used('one')}\n{used('two')}\n{used('three')}\n{DONE}", env={"RALPH_PRICES": str(table)})
    assert ran.end["summary"]["Cost"] == "≥ $3.0000 (by price table; unknown in 1 of 1 iteration)"


def test_the_session_may_name_the_model(run_rtf1: Callable[..., Ran], table: Path) -> None:
    session = rtf1("meta", meta={"kind": "session", "session_id": "s", "model": "one"})
    ran = run_rtf1(f"{session}\n{used(None)}\n{DONE}", env={"RALPH_PRICES": str(table)})
    assert ran.end["cost"]["usd"] == 1.0


def test_without_a_price_the_run_says_unknown(run_rtf1: Callable[..., Ran]) -> None:
    ran = run_rtf1(f"{used('one')}\n{DONE}", "--max-cost", "1")
    assert ran.end["summary"]["Cost"] == "unknown"
    assert ran.end["cost"] == {"usd": None, "reported": 0, "by_prices": 0, "unknown": 1}
    assert "cost_usd" not in ran.end["usage"]
    (notice,) = [n["text"] for n in ran.metas("notice") if "--max-cost" in n["text"]]
    assert "no price is known for one" in notice


def test_a_cost_limit_by_the_table_holds_between_iterations(run_rtf1: Callable[..., Ran], table: Path) -> None:
    ran = run_rtf1(used("one"), "--max-cost", "1.5", env={"RALPH_PRICES": str(table)})
    assert (ran.code, len(ran.iterations)) == (2, 2)
    assert "the cost has reached $2" in ran.end["reason"]


def test_a_cost_limit_by_the_table_holds_within_an_iteration(run_rtf1: Callable[..., Ran], table: Path) -> None:
    ran = run_rtf1(f"{used('one')}\nsleep 60", "--max-cost", "0.5", env={"RALPH_PRICES": str(table)}, timeout=30)
    assert (ran.code, len(ran.iterations)) == (2, 1)
    assert "the cost has reached at least $1" in ran.end["reason"]


def test_a_cost_limit_with_plain_output_warns_before_the_start(run: Callable[..., Ran]) -> None:
    ran = run("echo LOOP_COMPLETE", "--max-cost", "1")
    notices = [n["text"] for n in ran.metas("notice") if "--max-cost" in n["text"]]
    assert len(notices) == 1
    assert "reports neither its cost nor how many tokens" in notices[0]
