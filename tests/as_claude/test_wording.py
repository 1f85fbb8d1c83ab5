"""Errors in Claude's words, which our own reader of Claude's output understands as well."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ralph.agents.adapters import create
from ralph.as_claude.wording import api_error
from ralph.as_claude.writer import error_message, line
from ralph.judging.judge import Outcome, Verdict
from ralph.judging.observe import Observation
from ralph.judging.signals import Claim, Markers, Signal
from ralph.transcripts import meta

NOW = datetime(2026, 12, 31, 22, 30, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    ("resets_at", "words"),
    [
        (datetime(2026, 12, 31, 23, 0, tzinfo=UTC), "11pm (UTC)"),
        (datetime(2027, 1, 1, 0, 14, 1, tzinfo=UTC), "12:15am (UTC)"),
        (datetime(2027, 1, 5, 12, 0, tzinfo=UTC), "Jan 5, 2027, 12pm (UTC)"),
    ],
)
def test_the_reset_time_survives_the_way_through_claudes_words(resets_at: datetime, words: str) -> None:
    seen = Observation(Markers())
    seen.feed([meta.rate_limit(resets_at.timestamp())])
    verdict = Verdict(Outcome.RATE_LIMITED, "slow down", Claim(Signal.NONE, "no"))
    error = api_error(verdict, seen, "Codex", NOW)
    assert error is not None
    assert error.text == f"You've hit your limit · resets {words}"
    again = Observation(Markers())
    adapter = create("claude")
    again.feed(adapter.feed(line(error_message(error, None, NOW)).decode()) + adapter.flush())
    assert again.error is not None
    assert again.error["class"] == "rate_limited"
    assert again.resets_at is not None
    assert 0 <= again.resets_at - resets_at.timestamp() < 60


def test_a_failure_that_is_not_the_providers_has_no_such_words() -> None:
    verdict = Verdict(Outcome.FAILED, "exited with code 3", Claim(Signal.NONE, "no"))
    assert api_error(verdict, Observation(Markers()), "Codex", NOW) is None
