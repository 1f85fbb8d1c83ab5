"""Whose turn it is."""

from __future__ import annotations

import math

from ralph.judging.judge import Outcome
from ralph.loop.rotation import Rota
from ralph.loop.waits import Limit, Patience

NOW = 1_000_000.0


def limited(
    rota: Rota, index: int, told: float | None, now: float = NOW, outcome: Outcome = Outcome.RATE_LIMITED, **how: int
) -> tuple[Rota, Limit]:
    return rota.limited(index, Patience(retries=3), outcome, told, now, iteration=how.get("iteration", 1), jitter=0.0)


def test_the_first_free_one_is_chosen_and_hands_back_when_the_limit_is_over() -> None:
    rota = Rota.of(("claude", "codex"))
    assert rota.choose(NOW) == 0
    rota, limit = limited(rota, 0, NOW + 100)
    assert (limit.relief, limit.until, limit.told) == ("codex", NOW + 100, True)
    assert (rota.choose(NOW), rota.choose(NOW + 99), rota.choose(NOW + 100)) == (1, 1, 0)


def test_when_all_are_limited_the_one_that_is_free_first_is_waited_for() -> None:
    rota, _ = limited(Rota.of(("claude", "codex")), 0, NOW + 100)
    rota, limit = limited(rota, 1, NOW + 50)
    assert (limit.relief, limit.next_at) == (None, NOW + 50)
    assert rota.choose(NOW) == 1


def test_one_agent_alone_is_waited_for() -> None:
    rota, limit = limited(Rota.of(("claude",)), 0, NOW + 100)
    assert (limit.relief, limit.next_at, rota.choose(NOW)) == (None, NOW + 100, 0)


def test_guesses_are_counted_until_a_time_is_told_or_it_worked() -> None:
    rota = Rota.of(("claude",))
    for n in (1, 2, 3):
        rota, limit = limited(rota, 0, None, iteration=10 + n)
        assert (limit.guesses, limit.since) == (n, 11)
    rota, limit = limited(rota, 0, NOW + 5, iteration=14)
    assert limit.guesses == 0
    rota, limit = limited(rota.worked(0), 0, None, iteration=20)
    assert (limit.guesses, limit.since) == (1, 20)


def test_an_agent_whose_limit_does_not_end_is_left_out_while_others_work() -> None:
    rota = Rota.of(("claude", "codex"))
    for _ in range(4):
        rota, limit = limited(rota, 0, None)
    assert (limit.until, limit.relief) == (math.inf, "codex")
    assert rota.choose(NOW + 1e9) == 1


def test_a_used_up_quota_needs_a_person_unless_another_agent_is_free() -> None:
    rota, limit = limited(Rota.of(("claude", "codex")), 0, None, outcome=Outcome.QUOTA)
    assert limit.relief == "codex"
    _, limit = limited(rota, 1, None, outcome=Outcome.QUOTA)
    assert (limit.relief, limit.next_at) == (None, math.inf)
