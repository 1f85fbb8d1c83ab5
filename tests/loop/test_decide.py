"""What comes next, as a pure function."""

from __future__ import annotations

from typing import Any

import pytest

from ralph.loop.decide import EXIT_CODES, End, Facts, Policy, Step, decide, is_failure
from ralph.loop.judge import Outcome, Verdict
from ralph.loop.limits import Limits
from ralph.loop.signals import Claim, Signal
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


def test_an_ordinary_iteration_goes_on_and_says_why() -> None:
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
    assert step(facts(signal=Signal.COMPLETE), 2) == Step(None, "said to be complete 1 of 2 times in a row")
    assert step(facts(signal=Signal.COMPLETE, claims_in_a_row=2), 2).end is End.COMPLETE


def test_replan_ends() -> None:
    assert step(facts(signal=Signal.REPLAN)).end is End.REPLAN


@pytest.mark.parametrize("outcome", [Outcome.AUTH, Outcome.QUOTA, Outcome.PERMISSION_DENIED, Outcome.QUESTION])
def test_a_person_is_needed_at_once_and_told_what_to_do(outcome: Outcome) -> None:
    found = step(facts(outcome))
    assert found.end is End.NEEDS_PERSON
    assert found.reason.startswith("why — ")


@pytest.mark.parametrize("outcome", [o for o in Outcome if o is not Outcome.OK])
def test_everything_but_ok_is_a_failure(outcome: Outcome) -> None:
    assert is_failure(facts(outcome).verdict, None)
    assert not is_failure(facts().verdict, None)
    assert is_failure(facts().verdict, "changed what it must not")


def test_failures_in_a_row_end_it_and_0_is_no_limit() -> None:
    assert step(facts(Outcome.FAILED, failures_in_a_row=4)).end is None
    assert step(facts(Outcome.FAILED, failures_in_a_row=5)).end is End.FAILED
    assert step(facts(Outcome.FAILED, failures_in_a_row=500), failures=0).end is None


def test_iterations_end_it_and_0_is_no_limit() -> None:
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
def test_who_stopped_it_decides_the_end(why: str, end: End) -> None:
    assert step(facts(Outcome.INTERRUPTED, why=why)).end is end
