"""The agents of a run, in the order of their rotation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ralph.judging import costs
from ralph.launching.deadlines import deadlines_of
from ralph.launching.launcher import SessionMode
from ralph.loop.calls import Calls
from ralph.loop.rotation import Rotation
from ralph.loop.state import RunState, resumed

if TYPE_CHECKING:
    from ralph.judging.costs import CostOf
    from ralph.launching.launch import Launch
    from ralph.loop.resume import Past
    from ralph.runners.process import Deadlines


class Turn(msgspec.Struct, frozen=True):
    """One agent of the rotation, with what an iteration of it needs."""

    index: int
    launch: Launch
    deadlines: Deadlines
    cost_of: CostOf

    @property
    def fallback(self) -> bool:
        """Whether this agent is not the run's first choice."""
        return self.index > 0


def turns_of(launch: Launch) -> tuple[Turn, ...]:
    return tuple(
        Turn(index, one, deadlines_of(one), costs.pricing(one.prices, one.settings.model))
        for index, one in enumerate((launch, *launch.fallbacks))
    )


def takeover(before: Turn, now: Turn) -> str | None:
    """The notice that another agent runs; None if it is the same one."""
    if before.index == now.index:
        return None
    return f"{now.launch.agent} takes over{' again' if now.index < before.index else ''}"


def initial_state(launch: Launch, past: Past | None) -> RunState:
    """The state in which a run starts or resumes."""
    launches = (launch, *launch.fallbacks)
    names = tuple(one.agent for one in launches)
    state = resumed(past.state, names, ended=past.end) if past else RunState(rotation=Rotation.of(names))
    fresh = {one.agent for one in launches if one.session_mode is SessionMode.FRESH}
    return msgspec.structs.replace(
        state,
        calls=Calls(launch.settings.max_calls_per_hour, state.calls.times),
        sessions={name: session for name, session in state.sessions.items() if name not in fresh},
    )
