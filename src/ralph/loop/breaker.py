"""A circuit breaker that opens when a run is stuck: nothing changes, or the error or the answer stays the same.

Closed: all is well. Open: stuck; the run ends, or cools down (`breaker_auto_reset`). Half-open: the one iteration after
that is a trial; progress closes the breaker, anything else opens it again.
"""

from __future__ import annotations

import hashlib
import re
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from ralph.judging.judge import Outcome

if TYPE_CHECKING:
    from ralph.config.settings import Settings
    from ralph.judging.judge import Verdict
    from ralph.tree.snapshot import Changes

#: Numbers and ids may differ where the error is the same.
_VARIES = re.compile(r"\b(?=[\w-]*\d)[\w-]{6,}\b")
#: A deadline that ends an iteration in which files changed is not an error.
_DEADLINES = frozenset({Outcome.TIMEOUT_IDLE, Outcome.TIMEOUT_WALL})


class State(StrEnum):
    CLOSED = "closed"
    HALF_OPEN = "half_open"
    OPEN = "open"


class Thresholds(msgspec.Struct, frozen=True):
    """After how many iterations in a row a run is stuck; 0 disables a limit."""

    no_progress: int = 5
    same_error: int = 10
    same_answer: int = 10
    cooldown: float = 1800.0
    auto_reset: bool = False
    #: this many failures in a row end the run anyway
    failures: int = 5

    @classmethod
    def of(cls, settings: Settings) -> Thresholds:
        return cls(
            settings.stuck_after,
            settings.same_error_after,
            settings.same_answer_after,
            settings.breaker_cooldown,
            settings.breaker_auto_reset,
            settings.max_failures,
        )


class Round(msgspec.Struct, frozen=True):
    """What the breaker sees of one iteration."""

    number: int
    changed: bool
    worked: bool
    #: equal for equal errors; None if there was none
    error: str | None = None
    #: equal for the same answer and the same files; None without an answer, or if there was a commit
    answer: str | None = None


class Streak(msgspec.Struct, frozen=True, omit_defaults=True):
    """The same thing several times in a row."""

    what: str = ""
    count: int = 0
    since: int = 0

    def then(self, what: str | None, number: int) -> Streak:
        if what is None:
            return Streak()
        return Streak(what, self.count + 1, self.since) if what == self.what else Streak(what, 1, number)


class Breaker(msgspec.Struct, frozen=True, omit_defaults=True):
    state: State = State.CLOSED
    unchanged: Streak = Streak()
    #: how many of the unchanged ones did not fail
    worked: int = 0
    error: Streak = Streak()
    answer: Streak = Streak()
    #: the evidence, while it is open
    why: str = ""

    def after(self, seen: Round, limits: Thresholds) -> Breaker:
        unchanged = self.unchanged.then(None if seen.changed else "nothing changed", seen.number)
        counted = Breaker(
            self.state,
            unchanged,
            (self.worked + seen.worked) if unchanged.count else 0,
            self.error.then(seen.error, seen.number),
            self.answer.then(seen.answer, seen.number),
        )
        if self.state is State.HALF_OPEN:
            if seen.changed and seen.worked:
                return Breaker()
            return msgspec.structs.replace(counted, state=State.OPEN, why=counted.evidence(limits) or self.why)
        why = counted.evidence(limits)
        return counted if why is None else msgspec.structs.replace(counted, state=State.OPEN, why=why)

    def cooled_down(self) -> Breaker:
        """The next iteration is a trial."""
        return msgspec.structs.replace(self, state=State.HALF_OPEN) if self.state is State.OPEN else self

    def evidence(self, limits: Thresholds) -> str | None:
        """What stayed the same, how often and since when; None if the run is not stuck."""
        streak = self.unchanged
        # If all of them failed, --max-failures ends the run, unless it is disabled.
        if _reached(streak, limits.no_progress) and (self.worked or not limits.failures):
            return f"no progress in {_times(streak)}: no file changed, nothing was committed"
        if _reached(self.error, limits.same_error):
            return f"the same error in {_times(self.error)}"
        if _reached(self.answer, limits.same_answer):
            return f"the same answer in {_times(self.answer)}, with no commit and no other files changed"
        return None


def observed(number: int, verdict: Verdict, changes: Changes, answer: str | None) -> Round:
    """What the breaker sees of an iteration."""
    worked = verdict.outcome is Outcome.OK
    error = None
    if not worked and not (changes.changed and verdict.outcome in _DEADLINES):
        error = _digest(_VARIES.sub("#", f"{verdict.outcome}: {verdict.why}"))
    same = None
    if worked and answer is not None and changes.commits == 0:
        same = _digest("\n".join([answer, *changes.files]))
    return Round(number, changes.changed, worked, error, same)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _reached(streak: Streak, threshold: int) -> bool:
    return bool(threshold) and streak.count >= threshold


def _times(streak: Streak) -> str:
    if streak.count == 1:
        return f"iteration {streak.since}"
    return f"{streak.count} iterations in a row (since iteration {streak.since})"
