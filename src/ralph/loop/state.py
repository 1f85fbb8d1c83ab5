"""What a run has come to: written with the end of each iteration, so that another process can go on from there."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from ralph.judging.costs import RunCosts
from ralph.loop.breaker import Breaker
from ralph.loop.calls import Calls
from ralph.loop.rotation import Availability, Rotation
from ralph.loop.waits import Wait  # noqa: TC001 - msgspec reads it
from ralph.transcripts.events import Usage

#: JSON has no infinity.
_NEVER = 1e300


class Session(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent's own session, as far as the next iteration needs it."""

    id: str | None = None
    #: when it began, seconds since the epoch
    since: float = 0.0
    #: the usage that the agent told last
    told: Usage | None = None


class RunState(msgspec.Struct, omit_defaults=True):
    """Numbers, budgets and counters of a run."""

    iteration: int = 0
    #: iterations that count neither against the limit nor as failures
    uncounted: int = 0
    failures: int = 0
    claims: int = 0
    #: iterations in a row in which the agent was refused a tool
    denials: int = 0
    #: seconds that the run has taken, without the time in which no ralph was at it
    elapsed: float = 0.0
    usage: Usage = Usage()
    usage_missing: int = 0
    costs: RunCosts = msgspec.field(default_factory=RunCosts)
    breaker: Breaker = Breaker()
    rotation: Rotation = Rotation((), ())
    calls: Calls = Calls()
    #: by the name of the agent
    sessions: dict[str, Session] = {}
    #: what the next prompt must say
    notes: list[str] = []
    #: files that were changed and must not be
    trespassed: list[str] = []
    #: what is being waited for before the next iteration
    wait: Wait | None = None


def saved(state: RunState) -> dict[str, Any]:
    """For `iteration_end`, which has the breaker in a field of its own."""
    availability = tuple(msgspec.structs.replace(p, until=min(p.until, _NEVER)) for p in state.rotation.availability)
    rotation = msgspec.structs.replace(state.rotation, availability=availability)
    fields: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(state, rotation=rotation))
    fields.pop("breaker", None)
    return fields


def restored(iteration_end: dict[str, Any]) -> RunState:
    """The opposite of `saved`. Raises msgspec.ValidationError for what is none."""
    state = msgspec.convert(iteration_end["state"], RunState)
    state.breaker = msgspec.convert(iteration_end.get("breaker", {}), Breaker)
    if len(state.rotation.names) != len(state.rotation.availability):
        raise msgspec.ValidationError("names without posts")
    state.rotation = msgspec.structs.replace(
        state.rotation,
        availability=tuple(
            msgspec.structs.replace(p, until=math.inf) if p.until >= _NEVER else p for p in state.rotation.availability
        ),
    )
    return state


def resumed(state: RunState, names: tuple[str, ...], *, ended: str | None) -> RunState:
    """For a run that is gone on with by the agents `names`. `ended` says how it ended, if it came to an end.

    What ended it, a person has looked at: that starts to count from the beginning. A run that died goes on as it was.
    """
    availability = dict(zip(state.rotation.names, state.rotation.availability, strict=True))
    state = msgspec.structs.replace(
        state,
        rotation=Rotation(names, tuple(_free(availability.get(name, Availability())) for name in names)),
        breaker=state.breaker if state.wait is not None else state.breaker.cooled_down(),
    )
    if ended is not None:
        state.failures = state.denials = 0
    return state


def _free(one: Availability) -> Availability:
    """Who could be freed only by a person is tried again."""
    return Availability() if math.isinf(one.until) else one
