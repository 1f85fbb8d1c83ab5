"""The outcome of an iteration, read from the structure of the transcript and the exit status alone."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from ralph.judging.signals import Claim, Signal
from ralph.runners.process import Ended, EndKind

if TYPE_CHECKING:
    from ralph.judging.observe import Observation


class Outcome(StrEnum):
    OK = "ok"
    EMPTY = "empty"
    FAILED = "failed"
    CRASHED = "crashed"
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    AUTH = "auth"
    QUOTA = "quota"
    PERMISSION_DENIED = "permission_denied"
    CONTEXT_EXCEEDED = "context_exceeded"
    QUESTION = "question"
    TIMEOUT_IDLE = "timeout_idle"
    TIMEOUT_WALL = "timeout_wall"
    INTERRUPTED = "interrupted"
    NOT_FOUND = "not_found"


#: Only a person can resolve these.
NEEDS_PERSON = frozenset({Outcome.AUTH, Outcome.QUOTA, Outcome.PERMISSION_DENIED, Outcome.QUESTION})


#: What the agent itself reports when its process exits without an error.
_CLAIMED = {Signal.TASK_FAILED: Outcome.FAILED, Signal.FAILED: Outcome.FAILED, Signal.QUESTION: Outcome.QUESTION}


class Verdict(msgspec.Struct, frozen=True):
    outcome: Outcome
    why: str
    claim: Claim

    @property
    def completed(self) -> bool:
        return self.outcome is Outcome.OK and self.claim.signal is Signal.COMPLETE

    @property
    def replan(self) -> bool:
        return self.outcome is Outcome.OK and self.claim.signal is Signal.REPLAN

    @property
    def completion_why(self) -> str:
        """Why this is or is not a completion."""
        if self.outcome is not Outcome.OK and self.claim.signal is not Signal.NONE:
            return f"{self.claim.why}, but the iteration was not a success: {self.why}"
        return self.claim.why


def judge(ended: Ended, seen: Observation, *, structured: bool) -> Verdict:
    outcome, why = _outcome(ended, seen)
    claim = seen.message.claim(structured=structured, prompt=seen.prompt)
    if outcome is Outcome.OK and claim.signal in _CLAIMED:
        return Verdict(_CLAIMED[claim.signal], claim.why, claim)
    return Verdict(outcome, why, claim)


def _outcome(ended: Ended, seen: Observation) -> tuple[Outcome, str]:
    match ended.kind:
        case EndKind.NOT_STARTED:
            return Outcome.NOT_FOUND, ended.reason
        case EndKind.STOPPED:
            return Outcome.INTERRUPTED, ended.reason
        case EndKind.IDLE:
            if seen.retrying is not None and seen.retrying.get("class"):
                # It was silent because the provider made it wait.
                return _class(seen.retrying["class"]), f"{_message(seen.retrying)} (it was retrying); {ended.reason}"
            return Outcome.TIMEOUT_IDLE, ended.reason
        case EndKind.WALL:
            return Outcome.TIMEOUT_WALL, ended.reason
        case EndKind.LOST:
            return Outcome.CRASHED, ended.reason
        case EndKind.EXITED | EndKind.LINGERED:
            return _exited(ended, seen)


def _exited(ended: Ended, seen: Observation) -> tuple[Outcome, str]:
    reported = _reported(seen)
    # ralph ended an agent that lingered after its result: its exit status means nothing.
    status = 0 if ended.kind is EndKind.LINGERED else ended.status
    if reported is None and status and seen.retrying is not None:
        return _class(seen.retrying.get("class")), f"{_message(seen.retrying)} (it was still retrying); {ended.reason}"
    if status is not None and status < 0 and (reported is None or reported[0] is Outcome.FAILED):
        return Outcome.CRASHED, ended.reason
    if reported is not None:
        return reported
    if status:
        return Outcome.FAILED, ended.reason
    if not seen.spoke and not seen.tools.started:
        return Outcome.EMPTY, "the agent ended without an answer"
    return Outcome.OK, ended.reason


def _reported(seen: Observation) -> tuple[Outcome, str] | None:
    """The error that the agent's CLI itself reported."""
    result = seen.result
    if result is not None and result.get("ok") is False:
        cause = seen.error or result
        return _class(result.get("class") or cause.get("class")), _message(result, cause)
    if seen.error is not None:
        return _class(seen.error.get("class")), _message(seen.error)
    return None


def _class(name: Any) -> Outcome:
    try:
        return Outcome(name)
    except ValueError:
        return Outcome.FAILED


def _message(*sources: dict[str, Any]) -> str:
    for source in sources:
        for key in ("reason", "message"):
            if source.get(key):
                return str(source[key])[:500]
    return "the agent reported an error"
