"""What comes next, as a pure function."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ralph.config.settings import OnLimit
from ralph.judging.judge import Outcome, Verdict
from ralph.judging.signals import Claim, Signal
from ralph.loop.breaker import Breaker, State, Thresholds
from ralph.loop.decide import EXIT_CODES, End, Facts, Policy, Step, decide, is_failure, too_late
from ralph.loop.limits import Limits
from ralph.loop.waits import Limit, Patience, Wait
from ralph.transcripts.events import Usage


def facts(outcome: Outcome = Outcome.OK, signal: Signal = Signal.NONE, why: str = "why", **changes: Any) -> Facts:
    values: dict[str, Any] = {
        "iteration": 1,
        "verdict": Verdict(outcome, why, Claim(signal, "what was claimed")),
        "rejected": None,
        "trespass": None,
        "claims_in_a_row": 1 if signal is Signal.COMPLETE else 0,
        "failures_in_a_row": 0 if outcome is Outcome.OK else 1,
        "usage": Usage(),
        "elapsed": 1.0,
    }
    return Facts(**(values | changes))


def step(given: Facts, confirmations: int = 1, **limits: Any) -> Step:
    return decide(given, Policy(Limits(**limits), confirmations))


def test_the_exit_codes_are_those_of_the_contract() -> None:
    assert {e.value: c for e, c in EXIT_CODES.items() if e is not End.STOPPED} == {
        "complete": 0,
        "failed": 1,
        "limit": 2,
        "replan": 3,
        "stuck": 4,
        "needs_person": 5,
        "interrupted": 130,
        "terminated": 143,
    }


def test_after_an_ordinary_iteration_the_run_continues_and_says_why() -> None:
    assert step(facts()) == Step(None, "what was claimed")


def test_done_comes_before_every_limit() -> None:
    given = facts(signal=Signal.COMPLETE, iteration=5, usage=Usage(total_tokens=99, cost_usd=99.0), elapsed=99.0)
    assert step(given, iterations=5, tokens=1, cost=1.0, runtime=1.0).end is End.COMPLETE


def test_a_rejected_claim_is_not_done() -> None:
    given = facts(signal=Signal.COMPLETE, rejected="tests fail", claims_in_a_row=0)
    assert step(given) == Step(None, "tests fail")
    last = step(given, iterations=1)
    assert last.end is End.LIMIT
    assert "tests fail" in last.reason


def test_confirmations_are_counted() -> None:
    assert step(facts(signal=Signal.COMPLETE), 2) == Step(None, "the agent said it is done 1 of 2 times in a row")
    assert step(facts(signal=Signal.COMPLETE, claims_in_a_row=2), 2).end is End.COMPLETE


def test_a_convention_may_want_more_confirmations() -> None:
    verdict = Verdict(Outcome.OK, "why", Claim(Signal.COMPLETE, "it says so", times=2))
    first = step(facts(signal=Signal.COMPLETE, verdict=verdict))
    assert first == Step(None, "the agent said it is done 1 of 2 times in a row: it says so")
    last = step(facts(signal=Signal.COMPLETE, verdict=verdict, claims_in_a_row=2))
    assert last == Step(End.COMPLETE, "it says so, 2 times in a row")


def test_replan_ends_the_run() -> None:
    assert step(facts(signal=Signal.REPLAN)).end is End.REPLAN


@pytest.mark.parametrize("outcome", [Outcome.AUTH, Outcome.QUOTA, Outcome.PERMISSION_DENIED, Outcome.QUESTION])
def test_a_run_that_needs_a_person_ends_at_once_with_advice(outcome: Outcome) -> None:
    found = step(facts(outcome))
    assert found.end is End.NEEDS_PERSON
    assert found.reason.startswith("why — ")


@pytest.mark.parametrize("outcome", [o for o in Outcome if o is not Outcome.OK])
def test_everything_but_ok_is_a_failure(outcome: Outcome) -> None:
    assert is_failure(facts(outcome).verdict, None)
    assert not is_failure(facts().verdict, None)
    assert is_failure(facts().verdict, "changed what it must not")


def test_failures_in_a_row_end_a_run_and_0_disables_the_limit() -> None:
    assert step(facts(Outcome.FAILED, failures_in_a_row=4)).end is None
    assert step(facts(Outcome.FAILED, failures_in_a_row=5)).end is End.FAILED
    assert step(facts(Outcome.FAILED, failures_in_a_row=500), failures=0).end is None


def test_the_iteration_limit_ends_a_run_and_0_disables_it() -> None:
    assert step(facts(iteration=99)).end is None
    assert step(facts(iteration=100)).end is End.LIMIT
    assert step(facts(iteration=10_000), iterations=0).end is None


@pytest.mark.parametrize(
    ("limits", "reached"),
    [
        ({"runtime": 10.0}, True),
        ({"runtime": 11.0}, False),
        ({"cost": 2.0}, True),
        ({"cost": 2.1}, False),
        ({"tokens": 100}, True),
        ({"tokens": 101}, False),
    ],
)
def test_budgets(limits: dict[str, Any], reached: bool) -> None:
    given = facts(usage=Usage(prompt_tokens=60, completion_tokens=40, cost_usd=2.0), elapsed=10.0)
    assert (step(given, **limits).end is End.LIMIT) is reached


def test_an_unknown_cost_reaches_no_limit() -> None:
    assert step(facts(usage=Usage()), cost=0.01, tokens=1).end is None


@pytest.mark.parametrize(
    ("why", "end"), [("interrupted", End.INTERRUPTED), ("terminated", End.TERMINATED), ("the cost has", End.LIMIT)]
)
def test_the_reason_of_a_stop_decides_the_end(why: str, end: End) -> None:
    assert step(facts(Outcome.INTERRUPTED, why=why)).end is end


# -- limits of the provider

NOW = 1_000_000.0


def limit(seconds: float, **changes: Any) -> Limit:
    values: dict[str, Any] = {
        "until": NOW + seconds,
        "next_at": NOW + seconds,
        "reported": True,
        "guesses": 0,
        "since": 1,
    }
    return Limit(**(values | changes))


def limited(given: Limit, outcome: Outcome = Outcome.RATE_LIMITED, limits: Limits | None = None, **how: Any) -> Step:
    known = facts(outcome, limit=given, now=NOW, elapsed=how.pop("elapsed", 10.0), failures_in_a_row=0)
    return decide(known, Policy(limits or Limits(), patience=Patience(**how)))


@pytest.mark.parametrize("outcome", [Outcome.RATE_LIMITED, Outcome.QUOTA, Outcome.OVERLOADED, Outcome.FAILED])
def test_a_run_waits_for_a_limit(outcome: Outcome) -> None:
    found = limited(limit(120), outcome)
    assert found.end is None
    assert found.wait == Wait(120, NOW + 120, f"{outcome}: why")
    assert found.reason.startswith("trying again at ")


def test_a_limited_iteration_counts_neither_as_an_iteration_nor_as_a_failure() -> None:
    given = facts(Outcome.RATE_LIMITED, limit=limit(5), now=NOW, iteration=3, uncounted=1, failures_in_a_row=99)
    assert step(given, iterations=2).end is None
    after = facts(iteration=3, uncounted=1)
    assert (step(after, iterations=2).end, step(after, iterations=3).end) == (End.LIMIT, None)


def test_a_wait_that_is_too_long_needs_a_person() -> None:
    found = limited(limit(3601), longest=3600)
    assert found.end is End.NEEDS_PERSON
    assert "--max-wait" in found.reason
    assert limited(limit(3599), longest=3600).end is None
    assert limited(limit(1e6), longest=0).end is None


def test_a_run_does_not_wait_past_its_time_limit() -> None:
    found = limited(limit(60), limits=Limits(runtime=50), elapsed=10.0)
    assert found.end is End.LIMIT
    assert "run time" in found.reason
    assert limited(limit(60), limits=Limits(runtime=50), elapsed=10.0, longest=5).end is End.LIMIT
    assert limited(limit(30), limits=Limits(runtime=50), elapsed=10.0).end is None
    assert too_late(Wait(30, NOW + 30, ""), Limits(), 1e9) is None


@pytest.mark.parametrize("outcome", [Outcome.RATE_LIMITED, Outcome.QUOTA])
def test_on_limit_stop_ends_the_run_and_says_when_to_run_again(outcome: Outcome) -> None:
    found = limited(limit(60), outcome, on_limit=OnLimit.STOP)
    assert found.end is End.NEEDS_PERSON
    assert "the limit ends at" in found.reason


def test_on_limit_stop_is_about_account_limits_not_a_busy_provider() -> None:
    assert limited(limit(2, reported=False, guesses=1), Outcome.OVERLOADED, on_limit=OnLimit.STOP).end is None


def test_another_agent_takes_over_without_a_wait() -> None:
    found = limited(limit(1e9, fallback="codex", next_at=NOW), on_limit=OnLimit.FALLBACK)
    assert (found.end, found.wait) == (None, None)
    assert "codex takes over" in found.reason


def test_a_quota_without_a_known_end_needs_a_person() -> None:
    found = limited(limit(math.inf, reported=False, guesses=1), Outcome.QUOTA)
    assert found.end is End.NEEDS_PERSON
    assert "add credit" in found.reason


def test_a_limit_that_does_not_end_fails_with_the_evidence() -> None:
    assert limited(limit(9, reported=False, guesses=10, since=7)).end is None
    found = limited(limit(9, reported=False, guesses=11, since=7))
    assert found.end is End.FAILED
    assert "11 iterations in a row, since iteration 7" in found.reason
    assert "rate_limited: why" in found.reason
    assert limited(limit(9, reported=False, guesses=500), retries=0).end is None
    assert limited(limit(math.inf, reported=False, guesses=11)).end is End.FAILED, "nor is there another agent left"


def test_a_run_without_budget_does_not_wait() -> None:
    given = facts(Outcome.RATE_LIMITED, limit=limit(5), now=NOW, usage=Usage(cost_usd=3.0))
    assert step(given, cost=2.0).end is End.LIMIT


# -- stuck

OPEN = Breaker(State.OPEN, why="no progress in 5 iterations in a row (since iteration 2)")


def test_an_open_breaker_ends_the_run_with_its_evidence() -> None:
    found = step(facts(breaker=OPEN))
    assert found.end is End.STUCK
    assert found.reason.startswith("stuck: no progress in 5 iterations in a row (since iteration 2)")
    assert "what was claimed" in found.reason


def test_completion_and_limits_come_before_stuck() -> None:
    assert step(facts(signal=Signal.COMPLETE, breaker=OPEN)).end is End.COMPLETE
    assert step(facts(breaker=OPEN, iteration=5), iterations=5).end is End.LIMIT


def test_with_auto_reset_a_stuck_run_cools_down() -> None:
    cooling = Policy(thresholds=Thresholds(cooldown=60, auto_reset=True))
    found = decide(facts(breaker=OPEN, now=NOW), cooling)
    assert found.end is None
    assert found.wait is not None
    assert (found.wait.seconds, found.wait.until) == (60, NOW + 60)
    short = Policy(Limits(runtime=30), thresholds=Thresholds(cooldown=60, auto_reset=True))
    assert decide(facts(breaker=OPEN, now=NOW), short).end is End.LIMIT
