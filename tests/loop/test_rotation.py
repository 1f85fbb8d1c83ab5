"""Whose turn it is."""

from __future__ import annotations

import math

from ralph.judging.judge import Outcome
from ralph.loop.rotation import Rotation
from ralph.loop.waits import Limit, Patience

NOW = 1_000_000.0


def limited(
    rotation: Rotation,
    index: int,
    told: float | None,
    now: float = NOW,
    outcome: Outcome = Outcome.RATE_LIMITED,
    **how: int,
) -> tuple[Rotation, Limit]:
    return rotation.limited(
        index, Patience(retries=3), outcome, told, now, iteration=how.get("iteration", 1), jitter=0.0
    )


def test_the_first_free_one_is_chosen_and_hands_back_when_the_limit_is_over() -> None:
    rotation = Rotation.of(("claude", "codex"))
    assert rotation.choose(NOW) == 0
    rotation, limit = limited(rotation, 0, NOW + 100)
    assert (limit.fallback, limit.until, limit.told) == ("codex", NOW + 100, True)
    assert (rotation.choose(NOW), rotation.choose(NOW + 99), rotation.choose(NOW + 100)) == (1, 1, 0)


def test_when_all_are_limited_the_one_that_is_free_first_is_waited_for() -> None:
    rotation, _ = limited(Rotation.of(("claude", "codex")), 0, NOW + 100)
    rotation, limit = limited(rotation, 1, NOW + 50)
    assert (limit.fallback, limit.next_at) == (None, NOW + 50)
    assert rotation.choose(NOW) == 1


def test_one_agent_alone_is_waited_for() -> None:
    rotation, limit = limited(Rotation.of(("claude",)), 0, NOW + 100)
    assert (limit.fallback, limit.next_at, rotation.choose(NOW)) == (None, NOW + 100, 0)


def test_guesses_are_counted_until_a_time_is_told_or_it_worked() -> None:
    rotation = Rotation.of(("claude",))
    for n in (1, 2, 3):
        rotation, limit = limited(rotation, 0, None, iteration=10 + n)
        assert (limit.guesses, limit.since) == (n, 11)
    rotation, limit = limited(rotation, 0, NOW + 5, iteration=14)
    assert limit.guesses == 0
    rotation, limit = limited(rotation.worked(0), 0, None, iteration=20)
    assert (limit.guesses, limit.since) == (1, 20)


def test_an_agent_whose_limit_does_not_end_is_left_out_while_others_work() -> None:
    rotation = Rotation.of(("claude", "codex"))
    for _ in range(4):
        rotation, limit = limited(rotation, 0, None)
    assert (limit.until, limit.fallback) == (math.inf, "codex")
    assert rotation.choose(NOW + 1e9) == 1


def test_a_used_up_quota_needs_a_person_unless_another_agent_is_free() -> None:
    rotation, limit = limited(Rotation.of(("claude", "codex")), 0, None, outcome=Outcome.QUOTA)
    assert limit.fallback == "codex"
    _, limit = limited(rotation, 1, None, outcome=Outcome.QUOTA)
    assert (limit.fallback, limit.next_at) == (None, math.inf)
