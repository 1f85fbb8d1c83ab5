"""The calls of a sliding hour."""

from __future__ import annotations

from ralph.loop.calls import Calls

NOW = 1_000_000.0


def made(limit: int, *ago: float) -> Calls:
    calls = Calls(limit)
    for seconds in ago:
        calls = calls.called(NOW - seconds)
    return calls


def test_a_free_call_needs_no_wait() -> None:
    assert made(3, 20, 10).wait(NOW) is None


def test_the_wait_ends_when_the_oldest_call_is_an_hour_old() -> None:
    wait = made(3, 600, 20, 10).wait(NOW)
    assert wait is not None
    assert (wait.seconds, wait.until) == (3000, NOW + 3000)
    assert "limit of 3 calls an hour" in wait.why
    assert made(3, 600, 20, 10).wait(NOW + 3000) is None


def test_the_hour_slides() -> None:
    calls = made(2, 3599, 1800)
    wait = calls.wait(NOW)
    assert wait is not None
    assert wait.seconds == 1
    calls = calls.called(NOW + 1)
    wait = calls.wait(NOW + 1)
    assert wait is not None
    assert wait.seconds == 1799


def test_0_disables_the_limit_and_keeps_nothing() -> None:
    calls = made(0, *range(100))
    assert (calls.wait(NOW), calls.times) == (None, ())


def test_old_calls_are_dropped() -> None:
    calls = Calls(5)
    for n in range(1000):
        calls = calls.called(NOW + n * 700)
    assert len(calls.times) <= 6


def test_a_clock_that_was_set_back_blocks_nobody() -> None:
    assert made(1, -86400).wait(NOW) is None
