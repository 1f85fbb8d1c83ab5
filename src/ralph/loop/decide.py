"""What comes after an iteration: a pure function of what is known, with the reason that the user is told."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from ralph.loop.judge import NEEDS_PERSON, Outcome, Verdict
from ralph.loop.limits import Limits, budget_reached
from ralph.loop.signals import Signal

if TYPE_CHECKING:
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

_HELP = {
    Outcome.AUTH: "log in to the agent or set its key, then run again",
    Outcome.QUOTA: "the account's quota is used up: wait for it, add credit, or use another agent",
    Outcome.PERMISSION_DENIED: "the agent was refused a tool: allow it in the agent's settings",
    Outcome.QUESTION: "the agent waits for an answer: put it into the prompt",
}

#: Tried again after a pause that doubles each time.
_TRANSIENT = frozenset({Outcome.RATE_LIMITED, Outcome.OVERLOADED})
_FIRST_PAUSE = 2.0
_LONGEST_PAUSE = 300.0


class Facts(msgspec.Struct, frozen=True):
    """What is known after an iteration."""

    iteration: int
    verdict: Verdict
    #: why the claim of being done was not accepted (checks, paths), if it was not
    rejected: str | None
    #: what the agent changed that it must not change
    trespass: str | None
    claims_in_a_row: int
    failures_in_a_row: int
    usage: Usage
    elapsed: float
    #: how many checks agreed, when a claim was accepted
    checks: int = 0


class Step(msgspec.Struct, frozen=True):
    """Go on (`end` is None), after `pause` seconds, or end."""

    end: End | None
    reason: str
    pause: float = 0.0


def is_failure(verdict: Verdict, trespass: str | None) -> bool:
    return verdict.outcome is not Outcome.OK or trespass is not None


def decide(facts: Facts, limits: Limits, confirmations: int) -> Step:
    """Being done comes before every limit: done in the last allowed iteration is done."""
    verdict = facts.verdict
    if verdict.outcome is Outcome.INTERRUPTED:
        return _interrupted(verdict)
    if verdict.completed and facts.rejected is None and facts.claims_in_a_row >= confirmations:
        times = f", {confirmations} times in a row" if confirmations > 1 else ""
        return Step(End.COMPLETE, verdict.completion_why + times + _verified(facts.checks))
    if verdict.replan and facts.trespass is None:
        return Step(End.REPLAN, verdict.completion_why)
    if verdict.outcome is Outcome.FAILED and verdict.claim.signal is Signal.FAILED:
        return Step(End.FAILED, verdict.why)
    if verdict.outcome in NEEDS_PERSON:
        return Step(End.NEEDS_PERSON, f"{verdict.why} — {_HELP[verdict.outcome]}")
    if limits.failures and facts.failures_in_a_row >= limits.failures:
        last = facts.trespass or f"{verdict.outcome}: {verdict.why}"
        return Step(End.FAILED, f"{facts.failures_in_a_row} iterations in a row failed; the last one: {last}")
    budget = budget_reached(limits, facts.usage, facts.elapsed)
    if budget:
        return Step(End.LIMIT, budget + _not_done(facts, confirmations))
    if limits.iterations and facts.iteration >= limits.iterations:
        used = "the 1 iteration is" if limits.iterations == 1 else f"all {limits.iterations} iterations are"
        return Step(End.LIMIT, f"{used} used up{_not_done(facts, confirmations)}")
    pause = 0.0
    if verdict.outcome in _TRANSIENT:
        pause = min(_FIRST_PAUSE * 2 ** max(0, facts.failures_in_a_row - 1), _LONGEST_PAUSE)
    return Step(None, _why_not_done(facts, confirmations), pause)


def _verified(checks: int) -> str:
    match checks:
        case 0:
            return ""
        case 1:
            return ", and the check agrees"
        case _:
            return f", and all {checks} checks agree"


def _interrupted(verdict: Verdict) -> Step:
    match verdict.why:
        case "interrupted":
            return Step(End.INTERRUPTED, "interrupted by Ctrl-C")
        case "terminated":
            return Step(End.TERMINATED, "terminated by a signal")
        case reason:
            return Step(End.LIMIT, reason)


def _not_done(facts: Facts, confirmations: int) -> str:
    return f"; not complete: {_why_not_done(facts, confirmations)}"


def _why_not_done(facts: Facts, confirmations: int) -> str:
    verdict = facts.verdict
    if facts.trespass is not None:
        return facts.trespass
    if verdict.completed and facts.rejected is not None:
        return facts.rejected
    if verdict.completed:
        return f"said to be complete {facts.claims_in_a_row} of {confirmations} times in a row"
    if verdict.outcome is not Outcome.OK:
        return f"{verdict.outcome}: {verdict.why}"
    return verdict.completion_why
