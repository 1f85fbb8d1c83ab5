"""What comes after an iteration: a pure function of the facts, with a reason for the user."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from ralph.config.durations import format_duration
from ralph.config.settings import OnLimit
from ralph.judging.judge import NEEDS_PERSON, Outcome, Verdict
from ralph.judging.signals import Signal
from ralph.loop.breaker import Breaker, State, Thresholds
from ralph.loop.limits import Limits, budget_reached, used_up
from ralph.loop.waits import ACCOUNT, Limit, Patience, Wait, at

if TYPE_CHECKING:
    from ralph.config.settings import Settings
    from ralph.transcripts.events import Usage


class End(StrEnum):
    """How a run ends; each has its exit code."""

    COMPLETE = "complete"
    FAILED = "failed"
    LIMIT = "limit"
    REPLAN = "replan"
    STUCK = "stuck"
    NEEDS_PERSON = "needs_person"
    INTERRUPTED = "interrupted"
    TERMINATED = "terminated"
    STOPPED = "stopped"


EXIT_CODES: dict[End, int] = {
    End.COMPLETE: 0,
    End.FAILED: 1,
    End.LIMIT: 2,
    End.REPLAN: 3,
    End.STUCK: 4,
    End.NEEDS_PERSON: 5,
    End.INTERRUPTED: 130,
    End.TERMINATED: 143,
    End.STOPPED: 130,
}

#: The reason of an iteration that was interrupted by a pause and will run again.
PAUSED = "paused"

_HELP = {
    Outcome.AUTH: "log in to the agent or set its key, then run again",
    Outcome.QUOTA: "the account's quota is used up: wait until it resets, add credit, or use another agent",
    Outcome.PERMISSION_DENIED: "the agent was denied a tool: allow it in the agent's settings",
    Outcome.QUESTION: "the agent asks a question: put the answer in the prompt",
}


class Facts(msgspec.Struct, frozen=True):
    """What is known after an iteration."""

    iteration: int
    verdict: Verdict
    #: why a claim to be done was not accepted (checks, paths)
    rejected: str | None
    #: what the agent changed that it must not change, in words
    trespass: str | None
    claims_in_a_row: int
    failures_in_a_row: int
    usage: Usage
    elapsed: float
    #: what ralph saw when it accepted a claim to be done (checks, changes), in words
    seen: str = ""
    #: how many iterations so far do not count, because of a provider limit or a pause
    uncounted: int = 0
    #: seconds since the epoch
    now: float = 0.0
    #: the limit that this iteration ran into
    limit: Limit | None = None
    breaker: Breaker = Breaker()
    #: iterations in a row, including this one, in which the agent was denied a tool
    denials_in_a_row: int = 1


class Step(msgspec.Struct, frozen=True):
    """Continue (`end` is None), after a wait if there is one, or end."""

    end: End | None
    reason: str
    wait: Wait | None = None


class Policy(msgspec.Struct, frozen=True):
    """The settings that decisions depend on."""

    limits: Limits = Limits()
    confirmations: int = 1
    patience: Patience = Patience()
    thresholds: Thresholds = Thresholds()
    #: this many iterations in a row that were denied a tool need a person; 0 disables the limit
    denied_after: int = 1

    @classmethod
    def of(cls, settings: Settings) -> Policy:
        return cls(
            Limits.of(settings),
            settings.confirmations,
            Patience.of(settings),
            Thresholds.of(settings),
            settings.denied_after,
        )


def is_failure(verdict: Verdict, trespass: str | None) -> bool:
    return verdict.outcome is not Outcome.OK or trespass is not None


def decide(facts: Facts, policy: Policy) -> Step:
    """Completion comes before every limit: done in the last allowed iteration is done."""
    verdict, limits = facts.verdict, policy.limits
    confirmations = _needed(facts, policy)
    if verdict.outcome is Outcome.INTERRUPTED:
        return _interrupted(facts, limits)
    if verdict.completed and facts.rejected is None and facts.claims_in_a_row >= confirmations:
        times = f", {confirmations} times in a row" if confirmations > 1 else ""
        return Step(End.COMPLETE, f"{verdict.completion_why}{times}{_and(facts.seen)}")
    if verdict.replan and facts.trespass is None:
        return Step(End.REPLAN, verdict.completion_why)
    if verdict.outcome is Outcome.FAILED and verdict.claim.signal is Signal.FAILED:
        return Step(End.FAILED, verdict.why)
    if facts.limit is not None:
        return _limited(facts, facts.limit, policy)
    if verdict.outcome in NEEDS_PERSON and not _may_retry_denied(facts, policy):
        return Step(End.NEEDS_PERSON, f"{verdict.why} — {_HELP[verdict.outcome]}")
    if limits.failures and facts.failures_in_a_row >= limits.failures:
        last = facts.trespass or f"{verdict.outcome}: {verdict.why}"
        return Step(End.FAILED, f"{facts.failures_in_a_row} iterations in a row failed; the last one: {last}")
    reached = used_up(limits, facts.usage, facts.elapsed, facts.iteration - facts.uncounted)
    if reached:
        return Step(End.LIMIT, reached + _not_done(facts, confirmations))
    if facts.breaker.state is State.OPEN:
        return _stuck(facts, policy)
    return Step(None, _why_not_done(facts, confirmations))


def _needed(facts: Facts, policy: Policy) -> int:
    """How many claims in a row complete the run: a convention may want more than the settings."""
    return max(policy.confirmations, facts.verdict.claim.times)


def _may_retry_denied(facts: Facts, policy: Policy) -> bool:
    """An agent that is denied one tool may find another way, if the settings give it more tries."""
    return facts.verdict.outcome is Outcome.PERMISSION_DENIED and (
        not policy.denied_after or facts.denials_in_a_row < policy.denied_after
    )


def _limited(facts: Facts, limit: Limit, policy: Policy) -> Step:
    """The provider did not let the agent work: wait, use a fallback, or end and say what to do."""
    verdict, patience, now = facts.verdict, policy.patience, facts.now
    what = f"{verdict.outcome}: {verdict.why}"
    known = f"the limit ends at {at(limit.until, now)}" if limit.reported else "the provider did not say when it ends"
    budget = budget_reached(policy.limits, facts.usage, facts.elapsed)
    if budget:
        return Step(End.LIMIT, f"{budget}; not complete: {what}")
    if patience.on_limit is OnLimit.STOP and verdict.outcome in ACCOUNT:
        later = "then" if limit.reported else "later"
        return Step(End.NEEDS_PERSON, f"{what} — {known}: run again {later}, or use --on-limit wait")
    if limit.fallback is not None:
        return Step(None, f"{what}; {known}: {limit.fallback} takes over")
    if patience.retries and limit.guesses > patience.retries:
        tries = f"{limit.guesses} iterations in a row, since iteration {limit.since}"
        return Step(End.FAILED, f"the provider refused {tries}; the last one: {what}")
    if math.isinf(limit.next_at):
        return Step(End.NEEDS_PERSON, f"{what} — {_HELP[Outcome.QUOTA]}")
    wait = Wait(limit.next_at - now, limit.next_at, what)
    late = too_late(wait, policy.limits, facts.elapsed)
    if late is not None:
        return late
    if patience.longest and wait.seconds > patience.longest:
        longest = format_duration(patience.longest)
        return Step(End.NEEDS_PERSON, f"{what} — {known}, more than {longest} from now (--max-wait): run again then")
    return Step(None, f"trying again at {at(wait.until, now)}", wait)


def too_late(wait: Wait, limits: Limits, elapsed: float) -> Step | None:
    """The end of a run whose time limit comes before the end of a wait."""
    if not limits.runtime or elapsed + wait.seconds < limits.runtime:
        return None
    wanted, limit = format_duration(wait.seconds), format_duration(limits.runtime)
    return Step(End.LIMIT, f"a wait of {wanted} would exceed the run time limit of {limit}; not complete: {wait.why}")


def _stuck(facts: Facts, policy: Policy) -> Step:
    why = f"stuck: {facts.breaker.why}"
    if not policy.thresholds.auto_reset:
        return Step(End.STUCK, why + _not_done(facts, _needed(facts, policy)))
    cooldown = policy.thresholds.cooldown
    wait = Wait(cooldown, facts.now + cooldown, why)
    late = too_late(wait, policy.limits, facts.elapsed)
    return late or Step(None, f"{why}; trying once more after a cool-down", wait)


def _and(seen: str) -> str:
    return f", and {seen}" if seen else ""


def _interrupted(facts: Facts, limits: Limits) -> Step:
    match facts.verdict.why:
        case reason if reason == PAUSED:
            budget = budget_reached(limits, facts.usage, facts.elapsed)
            return Step(End.LIMIT, budget) if budget else Step(None, "the iteration runs again after the pause")
        case "interrupted":
            return Step(End.INTERRUPTED, "interrupted by Ctrl-C")
        case "terminated":
            return Step(End.TERMINATED, "terminated by a signal")
        case reason:
            # What it used may have become known only when it ended.
            return Step(End.LIMIT, budget_reached(limits, facts.usage, facts.elapsed) or reason)


def _not_done(facts: Facts, confirmations: int) -> str:
    return f"; not complete: {_why_not_done(facts, confirmations)}"


def _why_not_done(facts: Facts, confirmations: int) -> str:
    verdict = facts.verdict
    if facts.trespass is not None:
        return facts.trespass
    if verdict.completed and facts.rejected is not None:
        return facts.rejected
    if verdict.completed:
        said = f"the agent said it is done {facts.claims_in_a_row} of {confirmations} times in a row"
        return f"{said}: {verdict.completion_why}" if verdict.claim.times > 1 else said
    if verdict.outcome is not Outcome.OK:
        return f"{verdict.outcome}: {verdict.why}"
    return verdict.completion_why
