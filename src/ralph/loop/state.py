"""The state of a run: written with the end of each iteration, so that another process can resume from there."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

from ralph.judging.costs import RunCosts
from ralph.judging.judge import Outcome
from ralph.judging.usage import add_usage, known_total
from ralph.loop import breaker, waits
from ralph.loop.breaker import Breaker
from ralph.loop.calls import Calls
from ralph.loop.decide import is_failure
from ralph.loop.rotation import Availability, Rotation
from ralph.loop.sessions import Session
from ralph.loop.waits import Wait  # noqa: TC001 - msgspec reads it
from ralph.transcripts.events import Usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.judging.observe import Observation
    from ralph.loop.decide import Policy
    from ralph.loop.finished import Finished, Review

#: JSON has no infinity.
_NEVER = 1e300


class RunState(msgspec.Struct, frozen=True, omit_defaults=True):
    """Numbers, budgets and counters of a run. It never changes: an iteration makes a new one (`after`)."""

    iteration: int = 0
    #: iterations that count neither against the limit nor as failures
    uncounted: int = 0
    #: iterations in a row that failed
    failures: int = 0
    #: iterations in a row in which the agent claimed to be done, and ralph agreed
    claims: int = 0
    #: iterations in a row in which the agent was denied a tool
    denials: int = 0
    #: seconds that the run has taken, without the time between a crash and a resume
    elapsed: float = 0.0
    usage: Usage = Usage()
    #: iterations that reported no usage
    usage_missing: int = 0
    #: iterations whose usage is only a lower bound
    usage_partial: int = 0
    costs: RunCosts = RunCosts()
    breaker: Breaker = Breaker()
    rotation: Rotation = Rotation((), ())
    calls: Calls = Calls()
    #: by the name of the agent
    sessions: dict[str, Session] = {}
    #: what the next prompt must say
    notes: tuple[str, ...] = ()
    #: files outside the allowed paths that were changed
    trespassed: tuple[str, ...] = ()
    #: what the run waits for before the next iteration
    wait: Wait | None = None

    @property
    def used(self) -> Usage:
        """The usage of the run: a lower bound if it is unknown in some iterations."""
        missing = self.usage_missing > 0 and self.usage != Usage()
        return msgspec.structs.replace(self.usage, at_least=True) if missing else self.usage

    @property
    def counted(self) -> int:
        """Iterations that count against the limit."""
        return self.iteration - self.uncounted

    def after(
        self, finished: Finished, review: Review, policy: Policy, *, now: float, elapsed: float, jitter: float
    ) -> RunState:
        """The state after an iteration. `now` is in seconds since the epoch, `jitter` a random number from 0 to 1."""
        seen = finished.seen
        state = msgspec.structs.replace(
            self,
            iteration=finished.number,
            elapsed=elapsed,
            usage=_sum(self.usage, finished.used),
            usage_missing=self.usage_missing + (not seen.usage_seen),
            usage_partial=self.usage_partial + finished.used.at_least,
            costs=self.costs.plus(seen.cost),
            calls=self.calls.called(finished.started),
            rotation=_rotation(self.rotation, finished, policy, now, jitter),
            sessions=_sessions(self.sessions, finished.agent, finished.session),
            trespassed=tuple(sorted({*self.trespassed, *review.trespassed})),
            wait=None,
        )
        if not finished.counts:  # the agent did not act on the notes: they stay
            notes = (*self.notes, *review.notes)
            return msgspec.structs.replace(state, uncounted=self.uncounted + 1, notes=notes)
        verdict = finished.verdict
        claims = self.claims + 1 if verdict.completed and review.rejected is None else 0
        return msgspec.structs.replace(
            state,
            failures=self.failures + 1 if is_failure(verdict, review.trespass) else 0,
            denials=self.denials + 1 if verdict.outcome is Outcome.PERMISSION_DENIED else 0,
            claims=claims,
            # An agent that only confirms that it is done has nothing left to change.
            breaker=self.breaker if claims else _breaker(self.breaker, finished, policy),
            notes=review.notes,
        )

    def after_unfinished(
        self, number: int, agent: str, started: float, seen: Observation, *, elapsed: float
    ) -> RunState:
        """The state after an iteration during which ralph died. It runs again, so it does not count."""
        session, used = self.sessions.get(agent, Session()), seen.used(cut_short=True)
        if seen.usage_seen:
            session = msgspec.structs.replace(session, reported=seen.reported)
        return msgspec.structs.replace(
            self,
            iteration=number,
            uncounted=self.uncounted + 1,
            elapsed=elapsed,
            usage=_sum(self.usage, used),
            usage_missing=self.usage_missing + (not seen.usage_seen),
            usage_partial=self.usage_partial + used.at_least,
            costs=self.costs.plus(seen.cost),
            calls=self.calls.called(started),
            sessions=_sessions(self.sessions, agent, session),
            wait=None,
        )

    def waiting(self, wait: Wait | None) -> RunState:
        return msgspec.structs.replace(self, wait=wait)

    def cooled_down(self) -> RunState:
        """After a wait: if the run is stuck, the next iteration is a trial."""
        return msgspec.structs.replace(self, breaker=self.breaker.cooled_down())


def _sum(total: Usage, used: Usage) -> Usage:
    """The usage with one more iteration. It names a model only if all tokens are of that one."""
    if known_total(used) is None:
        model = total.model
    else:
        model = used.model if known_total(total) is None or total.model == used.model else None
    return msgspec.structs.replace(add_usage(total, used), model=model)


def _breaker(before: Breaker, finished: Finished, policy: Policy) -> Breaker:
    seen = breaker.observed(finished.number, finished.verdict, finished.changes, finished.seen.answer)
    return before.after(seen, policy.thresholds)


def _rotation(before: Rotation, finished: Finished, policy: Policy, now: float, jitter: float) -> Rotation:
    if not finished.limited:
        return before.worked(finished.turn)
    outcome, seen = finished.verdict.outcome, finished.seen
    return before.limited(
        finished.turn,
        policy.patience,
        outcome,
        waits.reported_end(outcome, seen.resets_at, seen.retry_after, now),
        now,
        iteration=finished.number,
        jitter=jitter,
    )


def _sessions(before: dict[str, Session], agent: str, session: Session) -> dict[str, Session]:
    others = {name: one for name, one in before.items() if name != agent}
    return others if session.id is None else {**others, agent: session}


def saved(state: RunState) -> dict[str, Any]:
    """For `iteration_end`, which has the breaker in a field of its own."""
    fields: dict[str, Any] = msgspec.to_builtins(
        msgspec.structs.replace(state, rotation=_with_ends(state.rotation, lambda until: min(until, _NEVER)))
    )
    fields.pop("breaker", None)
    return fields


def restored(iteration_end: dict[str, Any]) -> RunState:
    """The opposite of `saved`. Raises msgspec.ValidationError for anything else."""
    fields = iteration_end["state"]
    if not isinstance(fields, dict):
        raise msgspec.ValidationError("the state is not an object")
    state = msgspec.convert({**fields, "breaker": iteration_end.get("breaker", {})}, RunState)
    if len(state.rotation.names) != len(state.rotation.availability):
        raise msgspec.ValidationError("the rotation has names without an availability")
    rotation = _with_ends(state.rotation, lambda until: math.inf if until >= _NEVER else until)
    return msgspec.structs.replace(state, rotation=rotation)


def _with_ends(rotation: Rotation, end: Callable[[float], float]) -> Rotation:
    availability = tuple(msgspec.structs.replace(one, until=end(one.until)) for one in rotation.availability)
    return msgspec.structs.replace(rotation, availability=availability)


def resumed(state: RunState, names: tuple[str, ...], *, ended: str | None) -> RunState:
    """For a run that the agents `names` resume. `ended` says how it ended; None if it died.

    A person has looked at what ended a run, so that count starts again. A run that died continues as it was.
    """
    availability = dict(zip(state.rotation.names, state.rotation.availability, strict=True))
    return msgspec.structs.replace(
        state,
        rotation=Rotation(names, tuple(_free(availability.get(name, Availability())) for name in names)),
        breaker=state.breaker if state.wait is not None else state.breaker.cooled_down(),
        failures=state.failures if ended is None else 0,
        denials=state.denials if ended is None else 0,
    )


def _free(one: Availability) -> Availability:
    """An agent that only a person could free gets another try."""
    return Availability() if math.isinf(one.until) else one
