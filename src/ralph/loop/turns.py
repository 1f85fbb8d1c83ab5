"""The agents of a run: whose turn it is, and the session of each."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from ralph.judging import costs
from ralph.loop import waits
from ralph.loop.rotation import Rota
from ralph.loop.sessions import Sessions
from ralph.loop.state import Session, Standing, begun_anew
from ralph.runners.process import Deadlines

if TYPE_CHECKING:
    from ralph.loop.iteration import Finished
    from ralph.loop.resume import Past
    from ralph.planning.launch import Plan
    from ralph.transcripts.events import Usage


def standing(plan: Plan, past: Past | None) -> Standing:
    """Where a run begins: at nothing, or where it had come to."""
    names = tuple(one.agent for one in (plan, *plan.relief))
    return begun_anew(past.standing, names, ended=past.end) if past else Standing(rota=Rota.of(names))


class Crew:
    """`plan`, `sessions`, `deadlines` and `cost_of` are those of the agent whose turn it is."""

    def __init__(self, plan: Plan, state: Standing, seed: str) -> None:
        self.plans = (plan, *plan.relief)
        self._state = state
        self._random = random.Random(seed)
        self._sessions = [Sessions(one.session_mode, plan.settings.session_expiry) for one in self.plans]
        for one, sessions in zip(self.plans, self._sessions, strict=True):
            sessions.go_on(state.sessions.get(one.agent, Session()))
        self._take(0)

    def _take(self, turn: int) -> None:
        self.turn = turn
        self.plan = self.plans[turn]
        self.sessions = self._sessions[turn]
        self.deadlines = deadlines_of(self.plan)
        self.cost_of = costs.pricing(self.plan)

    def take_turn(self) -> str | None:
        """Everything that depends on which agent runs. What is to be told, if another one does."""
        before, turn = self.turn, self._state.rota.choose(time.time())
        self._take(turn)
        return f"{self.plan.agent} takes over{' again' if turn < before else ''}" if turn != before else None

    def limit(self, finished: Finished, patience: waits.Patience) -> waits.Limit | None:
        """The provider's limit that kept an iteration from working, if one did."""
        verdict, seen, now = finished.verdict, finished.seen, time.time()
        told = seen.error is not None or (seen.result is not None and seen.result.get("ok") is False)
        if not waits.is_limit(verdict, told=told):
            self._state.rota = self._state.rota.worked(self.turn)
            return None
        self._state.rota, limit = self._state.rota.limited(
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
        kept = {one.agent: each.saved() for one, each in zip(self.plans, self._sessions, strict=True)}
        return {name: session for name, session in kept.items() if session.id is not None}

    def has_told(self, agent: str, usage: Usage) -> None:
        """What an agent told of its session before it was cut short."""
        for one, sessions in zip(self.plans, self._sessions, strict=True):
            if one.agent == agent:
                sessions.told = usage


def deadlines_of(plan: Plan) -> Deadlines:
    return Deadlines(
        idle=plan.idle_timeout[0] or None,
        wall=plan.wall_timeout[0] or None,
        first_output=plan.spec.first_output_timeout if plan.spec else None,
        linger=plan.spec.linger if plan.spec else None,
        grace=plan.settings.grace,
    )
