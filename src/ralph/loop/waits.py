"""Provider limits: which outcomes are one, and when to try again. Time comes in as a value."""

from __future__ import annotations

import math
import re
import time
from typing import TYPE_CHECKING

import msgspec

from ralph.config.settings import OnLimit
from ralph.judging.judge import Outcome
from ralph.judging.signals import Signal

if TYPE_CHECKING:
    from ralph.config.settings import Settings
    from ralph.judging.judge import Verdict

#: Clocks differ, and a limit that ends this second may not have ended everywhere.
MARGIN = 1.5
#: A pause is up to this much longer than needed, so that many loops do not come back at once.
_JITTER = 0.25
#: After this many reported times in a row, a pause is at least as long as without them.
_TRUSTED = 3
#: Beyond this, a date means nothing to a reader.
_FOREVER = 400 * 86400.0

#: Limits of the account, which `--on-limit` is about.
ACCOUNT = frozenset({Outcome.RATE_LIMITED, Outcome.QUOTA})

#: How CLIs and their libraries report a broken connection to the provider.
_BROKEN = re.compile(
    r"stream (?:disconnected|closed|ended|error)"
    r"|connection (?:was )?(?:reset|dropped|closed|lost|aborted|error|timed out)"
    r"|E(?:CONNRESET|CONNABORTED|TIMEDOUT|PIPE)"
    r"|socket hang up|fetch failed|network error"
    r"|error sending request|premature(?:ly)? clos|incomplete (?:chunked )?read|answer was cut|closed the connection",
    re.IGNORECASE,
)


class Patience(msgspec.Struct, frozen=True):
    """How to handle limits. 0 disables `longest` and `retries`."""

    on_limit: OnLimit = OnLimit.WAIT
    longest: float = 6 * 3600.0
    first_pause: float = 2.0
    longest_pause: float = 300.0
    retries: int = 10

    @classmethod
    def of(cls, settings: Settings) -> Patience:
        return cls(
            settings.on_limit,
            settings.max_wait,
            settings.retry_delay,
            settings.retry_delay_max,
            settings.limit_retries,
        )


class Wait(msgspec.Struct, frozen=True):
    """The run waits for `seconds`, until the time `until` (seconds since the epoch)."""

    seconds: float
    until: float
    why: str


class Limit(msgspec.Struct, frozen=True):
    """A limit that an iteration ran into."""

    #: when to try this agent again, seconds since the epoch; infinite: only a person can end it
    until: float
    #: when the next agent is free
    next_at: float
    #: whether the provider reported that time
    reported: bool
    #: how many limits in a row without a reported time, this one included
    guesses: int
    #: the iteration of the first of them
    since: int
    #: another agent that is free now
    fallback: str | None = None


def is_limit(verdict: Verdict, *, reported: bool) -> bool:
    """Whether an iteration failed only because the provider did not let it work.

    `reported`: the agent's CLI itself reported an error.
    """
    match verdict.outcome:
        case Outcome.RATE_LIMITED | Outcome.OVERLOADED | Outcome.QUOTA:
            return True
        case Outcome.FAILED:
            from ralph.transcripts.classify import is_unreachable  # late: most runs never need it

            # Only what the CLI itself reports: an agent that says its task failed is not a broken connection.
            no_claim = verdict.claim.signal in (Signal.NONE, Signal.COMPLETE)
            return reported and no_claim and (is_unreachable(verdict.why) or bool(_BROKEN.search(verdict.why)))
        case _:
            return False


def reported_end(outcome: Outcome, resets_at: float | None, retry_after: float | None, now: float) -> float | None:
    """When the limit ends according to the provider, if that is in the future.

    An agent may report when its account's limits reset although it fails for another reason.
    """
    if outcome in ACCOUNT and resets_at is not None and math.isfinite(resets_at) and resets_at > now:
        return resets_at + MARGIN
    if retry_after is not None and math.isfinite(retry_after) and retry_after >= 0:
        return now + retry_after + MARGIN
    return None


def backoff(patience: Patience, attempt: int, jitter: float) -> float:
    """The pause before try number `attempt` (1, 2, …): doubles each time, up to a maximum. `jitter` is from 0 to 1."""
    doubled = patience.first_pause * 2.0 ** min(attempt - 1, 60)
    return min(doubled * (1 + _JITTER * jitter), patience.longest_pause)


def next_try(
    patience: Patience, outcome: Outcome, reported: float | None, now: float, *, tries: int, guesses: int, jitter: float
) -> float:
    """When to try again. `tries` counts limits in a row, `guesses` those of them without a reported time."""
    if reported is not None:
        least = backoff(patience, tries - _TRUSTED, jitter) if tries > _TRUSTED else 0.0
        return max(reported, now + least)
    if outcome is Outcome.QUOTA:
        return math.inf
    return now + backoff(patience, guesses, jitter)


def at(moment: float, now: float) -> str:
    """A time of day for people, with the date if it is not today."""
    if moment - now > _FOREVER:
        return "a time more than a year from now"
    then, today = time.localtime(moment), time.localtime(now)
    near = then[:3] == today[:3]
    return time.strftime("%H:%M:%S" if near else "%Y-%m-%d %H:%M", then)
