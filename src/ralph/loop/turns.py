"""The agents of a run: whose turn it is, and the session of each."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from ralph.judging import costs
from ralph.loop import waits
from ralph.loop.rotation import Rotation
from ralph.loop.sessions import Sessions
from ralph.loop.state import RunState, Session, resumed
from ralph.runners.process import Deadlines

if TYPE_CHECKING:
    from ralph.launching.launch import Launch
    from ralph.loop.iteration import Finished
    from ralph.loop.resume import Past
    from ralph.transcripts.events import Usage


def initial_state(launch: Launch, past: Past | None) -> RunState:
    """Where a run begins: at nothing, or where it had come to."""
    names = tuple(one.agent for one in (launch, *launch.fallbacks))
    return resumed(past.state, names, ended=past.end) if past else RunState(rotation=Rotation.of(names))


class Turns:
    """`plan`, `sessions`, `deadlines` and `cost_of` are those of the agent whose turn it is."""

    def __init__(self, launch: Launch, state: RunState, seed: str) -> None:
        self.launches = (launch, *launch.fallbacks)
        self._state = state
        self._random = random.Random(seed)
        self._sessions = [Sessions(one.session_mode, launch.settings.session_expiry) for one in self.launches]
        for one, sessions in zip(self.launches, self._sessions, strict=True):
            sessions.go_on(state.sessions.get(one.agent, Session()))
        self._take(0)

    def _take(self, turn: int) -> None:
        self.turn = turn
        self.launch = self.launches[turn]
        self.sessions = self._sessions[turn]
        self.deadlines = deadlines_of(self.launch)
        self.cost_of = costs.pricing(self.launch.prices, self.launch.settings.model)

    def take_turn(self) -> str | None:
        """Everything that depends on which agent runs. What is to be told, if another one does."""
        before, turn = self.turn, self._state.rotation.choose(time.time())
        self._take(turn)
        return f"{self.launch.agent} takes over{' again' if turn < before else ''}" if turn != before else None

    def limit(self, finished: Finished, patience: waits.Patience) -> waits.Limit | None:
        """The provider's limit that kept an iteration from working, if one did."""
        verdict, seen, now = finished.verdict, finished.seen, time.time()
        told = seen.error is not None or (seen.result is not None and seen.result.get("ok") is False)
        if not waits.is_limit(verdict, told=told):
            self._state.rotation = self._state.rotation.worked(self.turn)
            return None
        self._state.rotation, limit = self._state.rotation.limited(
            self.turn,
            patience,
            verdict.outcome,
            waits.told_end(verdict.outcome, seen.resets_at, seen.retry_after, now),
            now,
            iteration=finished.number,
            jitter=self._random.random(),
        )
        return limit

    def saved_sessions(self) -> dict[str, Session]:
        """As they can be written down, by the names of the agents."""
        kept = {one.agent: each.saved() for one, each in zip(self.launches, self._sessions, strict=True)}
        return {name: session for name, session in kept.items() if session.id is not None}

    def has_told(self, agent: str, usage: Usage) -> None:
        """What an agent told of its session before it was cut short."""
        for one, sessions in zip(self.launches, self._sessions, strict=True):
            if one.agent == agent:
                sessions.told = usage


def deadlines_of(launch: Launch) -> Deadlines:
    return Deadlines(
        idle=launch.idle_timeout[0] or None,
        wall=launch.wall_timeout[0] or None,
        first_output=launch.spec.first_output_timeout if launch.spec else None,
        linger=launch.spec.linger if launch.spec else None,
        grace=launch.settings.grace,
    )
