"""Budgets that hold at any moment."""

from __future__ import annotations

from ralph.loop.limits import Limits, budget_reached
from ralph.transcripts.events import Usage


def test_0_disables_every_budget() -> None:
    assert budget_reached(Limits(), Usage(total_tokens=10**12, cost_usd=1e9), 1e9) is None


def test_each_reason_names_the_limit() -> None:
    assert "run time limit of 45 s" in (budget_reached(Limits(runtime=45), Usage(), 45.0) or "")
    assert "$1.5 (limit $1)" in (budget_reached(Limits(cost=1), Usage(cost_usd=1.5), 0.0) or "")
    assert budget_reached(Limits(tokens=1000), Usage(total_tokens=1200), 0.0) == "1,200 tokens were used (limit 1,000)"


def test_an_unknown_usage_reaches_no_limit() -> None:
    assert budget_reached(Limits(cost=0.01, tokens=1), Usage(), 0.0) is None
