"""Which outcomes are limits, and when to try again."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import pytest

from ralph.judging.judge import Outcome, Verdict
from ralph.judging.signals import Claim, Signal
from ralph.loop.waits import MARGIN, Patience, at, backoff, is_limit, next_try, reported_end

if TYPE_CHECKING:
    from collections.abc import Iterator

NOW = 1_000_000.0


def verdict(outcome: Outcome, why: str = "no", signal: Signal = Signal.NONE) -> Verdict:
    return Verdict(outcome, why, Claim(signal, "claimed"))


@pytest.mark.parametrize("outcome", list(Outcome))
def test_only_what_the_provider_refuses_is_a_limit(outcome: Outcome) -> None:
    expected = outcome in (Outcome.RATE_LIMITED, Outcome.OVERLOADED, Outcome.QUOTA)
    assert is_limit(verdict(outcome), reported=True) is expected


@pytest.mark.parametrize(
    "why",
    [
        "stream disconnected before completion: error sending request",  # Codex
        "API Error: Connection dropped (ECONNRESET). Check the gateway set in ANTHROPIC_BASE_URL, then try again.",
        "error sending request for url (http://127.0.0.1:8765/v1/responses)",  # Codex 0.36
        "connect ECONNREFUSED 127.0.0.1:8765",
        "Could not connect to local model provider at http://127.0.0.1:8765/v1.",  # Copilot
        "the answer was cut: the server ended it without saying that it is complete",
    ],
)
def test_a_broken_stream_is_a_limit_if_the_cli_reports_it(why: str) -> None:
    assert is_limit(verdict(Outcome.FAILED, why), reported=True)
    assert not is_limit(verdict(Outcome.FAILED, why), reported=False)
    assert not is_limit(verdict(Outcome.FAILED, why, Signal.TASK_FAILED), reported=True)
    assert not is_limit(verdict(Outcome.CRASHED, why), reported=True)


@pytest.mark.parametrize("why", ["exited with code 4", "tests fail", "invalid model", "prompt rejected"])
def test_other_failures_are_not_limits(why: str) -> None:
    assert not is_limit(verdict(Outcome.FAILED, why), reported=True)


def test_a_reported_end_gets_a_margin() -> None:
    assert reported_end(Outcome.RATE_LIMITED, NOW + 60, None, NOW) == NOW + 60 + MARGIN
    assert reported_end(Outcome.QUOTA, NOW + 60, 5.0, NOW) == NOW + 60 + MARGIN
    assert reported_end(Outcome.RATE_LIMITED, None, 5.0, NOW) == NOW + 5 + MARGIN
    assert 1 <= MARGIN <= 2


@pytest.mark.parametrize("resets_at", [None, NOW - 1, NOW, math.nan, math.inf])
def test_a_past_or_impossible_time_is_ignored(resets_at: float | None) -> None:
    assert reported_end(Outcome.RATE_LIMITED, resets_at, None, NOW) is None
    assert reported_end(Outcome.RATE_LIMITED, resets_at, math.nan, NOW) is None


@pytest.mark.parametrize("outcome", [Outcome.OVERLOADED, Outcome.FAILED])
def test_the_end_of_an_account_limit_is_ignored_if_something_else_failed(outcome: Outcome) -> None:
    assert reported_end(outcome, NOW + 9999, None, NOW) is None
    assert reported_end(outcome, NOW + 9999, 5.0, NOW) == NOW + 5 + MARGIN


def test_pauses_double_up_to_the_maximum() -> None:
    patience = Patience(first_pause=2, longest_pause=300)
    assert [backoff(patience, n, 0.0) for n in (1, 2, 3, 8, 9, 1000)] == [2, 4, 8, 256, 300, 300]


def test_jitter_makes_a_pause_a_little_longer_but_never_above_the_maximum() -> None:
    patience = Patience(first_pause=8, longest_pause=9)
    assert 8 < backoff(patience, 1, 0.3) < backoff(patience, 1, 0.4) <= 9
    assert backoff(patience, 1, 1.0) == 9
    assert backoff(Patience(first_pause=8), 1, 1.0) <= 8 * 1.5


def test_when_to_try_again() -> None:
    patience = Patience(first_pause=2)

    def after(outcome: Outcome, told: float | None, tries: int, guesses: int) -> float:
        return next_try(patience, outcome, told, NOW, tries=tries, guesses=guesses, jitter=0.0) - NOW

    assert after(Outcome.RATE_LIMITED, NOW + 77, 1, 0) == 77
    assert after(Outcome.RATE_LIMITED, None, 3, 3) == 8
    assert after(Outcome.QUOTA, NOW + 77, 1, 0) == 77
    assert after(Outcome.QUOTA, None, 1, 1) == math.inf


def test_a_provider_that_always_reports_a_short_wait_is_asked_less_and_less_often() -> None:
    pauses = [
        next_try(Patience(), Outcome.RATE_LIMITED, NOW + 1, NOW, tries=n, guesses=0, jitter=0.0) - NOW
        for n in range(1, 20)
    ]
    assert pauses[:3] == [1, 1, 1]
    assert pauses == sorted(pauses)
    assert pauses[-1] == 300


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("utc")
def test_a_time_for_people() -> None:
    day = 1_800_000_000.0 - 1_800_000_000 % 86400
    assert at(day + 3661, day) == "01:01:01"
    assert at(day + 86400 + 3600, day).endswith("01:00")
    assert at(day + 86400 + 3600, day).startswith("2027-01-1")
    assert "more than a year" in at(1e18, day)
