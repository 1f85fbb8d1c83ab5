"""Which agent runs next."""

from __future__ import annotations

import math

from ralph.judging.judge import Outcome
from ralph.loop.rotation import Rotation
from ralph.loop.waits import Limit, Patience

NOW = 1_000_000.0


def limited(
    rotation: Rotation,
    index: int,
    reported: float | None,
    now: float = NOW,
    outcome: Outcome = Outcome.RATE_LIMITED,
    **how: int,
) -> tuple[Rotation, Limit]:
    after = rotation.limited(
        index, Patience(retries=3), outcome, reported, now, iteration=how.get("iteration", 1), jitter=0.0
    )
    limit = after.limit(index, now)
    assert limit is not None
    return after, limit


def test_the_first_free_agent_runs_and_the_preferred_one_returns_after_its_limit() -> None:
    rotation = Rotation.of(("claude", "codex"))
    assert rotation.choose(NOW) == 0
    rotation, limit = limited(rotation, 0, NOW + 100)
    assert (limit.fallback, limit.until, limit.reported) == ("codex", NOW + 100, True)
    assert (rotation.choose(NOW), rotation.choose(NOW + 99), rotation.choose(NOW + 100)) == (1, 1, 0)


def test_if_all_are_limited_the_run_waits_for_the_one_that_is_free_soonest() -> None:
    rotation, _ = limited(Rotation.of(("claude", "codex")), 0, NOW + 100)
    rotation, limit = limited(rotation, 1, NOW + 50)
    assert (limit.fallback, limit.next_at) == (None, NOW + 50)
    assert rotation.choose(NOW) == 1


def test_an_agent_that_worked_has_no_limit() -> None:
    rotation = Rotation.of(("claude",))
    assert rotation.limit(0, NOW) is None
    rotation, _ = limited(rotation, 0, NOW + 100)
    assert rotation.worked(0).limit(0, NOW) is None


def test_a_run_waits_for_its_only_agent() -> None:
    rotation, limit = limited(Rotation.of(("claude",)), 0, NOW + 100)
    assert (limit.fallback, limit.next_at, rotation.choose(NOW)) == (None, NOW + 100, 0)


def test_guesses_are_counted_until_a_time_is_reported_or_the_agent_works() -> None:
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
