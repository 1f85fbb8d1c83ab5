"""When a run is stuck, and when it is not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ralph.judging.judge import Outcome, Verdict
from ralph.judging.signals import Claim, Signal
from ralph.loop.breaker import Breaker, Round, State, Thresholds, observed
from ralph.tree.snapshot import Changes

NOTHING = Changes([], 0, False)
LOG = Changes(["log.txt"], 0, True)
COMMIT = Changes([], 1, True)


def seen(number: int, changes: Changes = NOTHING, outcome: Outcome = Outcome.OK, **how: Any) -> Round:
    verdict = Verdict(outcome, how.get("why", "why"), Claim(Signal.NONE, "nothing"))
    return observed(number, verdict, changes, how.get("answer", f"answer {number}"))


def feed(*rounds: Round, **limits: Any) -> Breaker:
    breaker = Breaker()
    for one in rounds:
        breaker = breaker.after(one, Thresholds(**limits))
    return breaker


def test_by_default_reading_and_planning_for_some_iterations_is_not_stuck() -> None:
    assert feed(*(seen(n) for n in range(1, 5))).state is State.CLOSED


def test_no_change_for_n_iterations_is_stuck_and_says_since_when() -> None:
    breaker = feed(seen(1, LOG), *(seen(n) for n in (2, 3, 4)), no_progress=3)
    assert breaker.state is State.OPEN
    assert breaker.why.startswith("no progress in 3 iterations in a row (since iteration 2)")


@pytest.mark.parametrize("change", [LOG, COMMIT])
def test_a_change_is_progress_and_so_is_a_commit_alone(change: Changes) -> None:
    rounds = [seen(n, change if n % 3 == 0 else NOTHING) for n in range(1, 30)]
    assert feed(*rounds, no_progress=3).state is State.CLOSED


def test_0_disables_a_limit() -> None:
    rounds = [seen(n, answer="same") for n in range(1, 100)]
    assert feed(*rounds, no_progress=0, same_error=0, same_answer=0).state is State.CLOSED


def test_failures_alone_are_left_to_max_failures_unless_it_is_disabled() -> None:
    rounds = [seen(n, NOTHING, Outcome.FAILED, why=f"{'x' * n}") for n in range(1, 5)]
    assert feed(*rounds, no_progress=4, failures=10).state is State.CLOSED
    assert feed(*rounds, no_progress=4, failures=0).state is State.OPEN
    assert feed(*rounds[:3], seen(4), no_progress=4, failures=10).state is State.OPEN


def test_the_same_error_is_stuck_even_if_a_file_changes() -> None:
    rounds = [seen(n, LOG, Outcome.FAILED, why=f"request req_0{n}abc failed with status 400") for n in range(1, 5)]
    breaker = feed(*rounds, same_error=4)
    assert breaker.why == "the same error in 4 iterations in a row (since iteration 1)"


def test_different_errors_are_not_the_same() -> None:
    rounds = [seen(n, LOG, Outcome.FAILED, why=f"exited with code {n}") for n in range(1, 9)]
    assert feed(*rounds, same_error=3).state is State.CLOSED


def test_a_deadline_after_changed_files_is_not_an_error() -> None:
    rounds = [seen(n, LOG, Outcome.TIMEOUT_WALL) for n in range(1, 9)]
    assert feed(*rounds, same_error=3).state is State.CLOSED
    rounds = [seen(n, NOTHING, Outcome.TIMEOUT_WALL) for n in range(1, 9)]
    assert feed(*rounds, same_error=3).state is State.OPEN


def test_the_same_answer_with_the_same_files_is_stuck() -> None:
    breaker = feed(*(seen(n, LOG, answer="I cannot") for n in (1, 2, 3)), same_answer=3)
    assert breaker.why.startswith("the same answer in 3 iterations in a row (since iteration 1)")


def test_a_terse_agent_that_gets_work_done_is_not_stuck() -> None:
    commits = [seen(n, COMMIT, answer="Done.") for n in range(1, 50)]
    files = [seen(n, Changes([f"part{n}.py"], 0, True), answer="Done.") for n in range(1, 50)]
    assert feed(*commits).state is State.CLOSED
    assert feed(*files).state is State.CLOSED


def test_a_half_open_breaker_closes_on_progress_and_opens_again_without() -> None:
    breaker = feed(*(seen(n) for n in (1, 2)), no_progress=2).cooled_down()
    assert breaker.state is State.HALF_OPEN
    assert breaker.after(seen(3, COMMIT), Thresholds(no_progress=2)) == Breaker()
    again = breaker.after(seen(3), Thresholds(no_progress=2))
    assert again.state is State.OPEN
    assert "3 iterations in a row (since iteration 1)" in again.why
    failed = breaker.after(seen(3, LOG, Outcome.FAILED), Thresholds(no_progress=2))
    assert (failed.state, failed.why) == (State.OPEN, breaker.why)


def test_only_an_open_breaker_cools_down() -> None:
    assert Breaker().cooled_down() == Breaker()


def test_a_breaker_survives_the_journal() -> None:
    breaker = feed(*(seen(n, LOG, answer="I cannot") for n in (1, 2, 3)), same_answer=3)
    assert msgspec.convert(msgspec.to_builtins(breaker), Breaker) == breaker
    assert msgspec.to_builtins(Breaker()) == {}
