"""Limits of a provider: which outcomes are one, and when it makes sense to try again. Time comes in as a value."""

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

#: Clocks differ, and a limit that ends in this second may not have ended everywhere.
MARGIN = 1.5
#: A pause is up to this much longer than it had to be, so that many loops do not come back at once.
_JITTER = 0.25
#: Told times are believed so often in a row; from then on a pause is at least what it would be without them.
_BELIEVED = 3
#: What is said in words rather than in years.
_FOREVER = 400 * 86400.0

#: Limits of the account, for which `--on-limit` is meant.
ACCOUNT = frozenset({Outcome.RATE_LIMITED, Outcome.QUOTA})

#: How CLIs and their libraries say that the connection to the provider broke.
_CUT = re.compile(
    r"stream (?:disconnected|closed|ended|error)"
    r"|connection (?:was )?(?:reset|dropped|closed|lost|aborted|refused|error|timed out)"
    r"|E(?:CONNRESET|CONNREFUSED|CONNABORTED|TIMEDOUT|PIPE|AI_AGAIN|NETUNREACH)"
    r"|socket hang up|fetch failed|network error"
    r"|error sending request|premature(?:ly)? clos|incomplete (?:chunked )?read|answer was cut|closed the connection",
    re.IGNORECASE,
)


class Patience(msgspec.Struct, frozen=True):
    """How limits are met. 0 is no limit for `longest` and `retries`."""

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
    """Nothing is done for `seconds`, that is until the time `until` (seconds since the epoch)."""

    seconds: float
    until: float
    why: str


class Limit(msgspec.Struct, frozen=True):
    """A limit that an iteration ran into."""

    #: when to try this agent again, seconds since the epoch; infinite: only a person can end it
    until: float
    #: when some agent is free
    next_at: float
    #: whether the provider said so
    told: bool
    #: how many in a row without a told time, this one included
    guesses: int
    #: the iteration that was the first of them
    since: int
    #: another agent that is free now
    fallback: str | None = None


def is_limit(verdict: Verdict, *, told: bool) -> bool:
    """Whether an iteration failed only because the provider did not let it work. `told`: its CLI reported an error."""
    match verdict.outcome:
        case Outcome.RATE_LIMITED | Outcome.OVERLOADED | Outcome.QUOTA:
            return True
        case Outcome.FAILED:
            # Only what the CLI itself reports: what the agent claims of its work is no broken connection.
            return told and verdict.claim.signal in (Signal.NONE, Signal.COMPLETE) and bool(_CUT.search(verdict.why))
        case _:
            return False


def told_end(outcome: Outcome, resets_at: float | None, retry_after: float | None, now: float) -> float | None:
    """When the provider said that the limit ends, if that is still to come.

    An agent may tell when its account's limits are renewed while it fails of something else.
    """
    if outcome in ACCOUNT and resets_at is not None and math.isfinite(resets_at) and resets_at > now:
        return resets_at + MARGIN
    if retry_after is not None and math.isfinite(retry_after) and retry_after >= 0:
        return now + retry_after + MARGIN
    return None


def backoff(patience: Patience, attempt: int, jitter: float) -> float:
    """The pause before try number `attempt` (1, 2, …): doubled each time up to the ceiling; jitter is from 0 to 1."""
    doubled = patience.first_pause * 2.0 ** min(attempt - 1, 60)
    return min(doubled * (1 + _JITTER * jitter), patience.longest_pause)


def next_try(
    patience: Patience, outcome: Outcome, told: float | None, now: float, *, tries: int, guesses: int, jitter: float
) -> float:
    """When to try again. `tries` and `guesses` are limits in a row, all of them and those without a told time."""
    if told is not None:
        least = backoff(patience, tries - _BELIEVED, jitter) if tries > _BELIEVED else 0.0
        return max(told, now + least)
    if outcome is Outcome.QUOTA:
        return math.inf
    return now + backoff(patience, guesses, jitter)


def at(moment: float, now: float) -> str:
    """A time of the day for people, with the date where that is another one."""
    if moment - now > _FOREVER:
        return "a time that is more than a year away"
    then, today = time.localtime(moment), time.localtime(now)
    near = then[:3] == today[:3]
    return time.strftime("%H:%M:%S" if near else "%Y-%m-%d %H:%M", then)
