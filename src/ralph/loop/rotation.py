"""Whose turn it is: the first agent that no limit holds back. Without a list of agents there is one only."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from ralph.loop.waits import Limit, Patience, next_try

if TYPE_CHECKING:
    from ralph.judging.judge import Outcome


class Availability(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known about the limit of one agent. All of it is forgotten when the agent worked."""

    until: float = 0.0
    tries: int = 0
    guesses: int = 0
    since: int = 0


class Rotation(msgspec.Struct, frozen=True):
    """The agents in order of preference, each with its post."""

    names: tuple[str, ...]
    availability: tuple[Availability, ...]

    @classmethod
    def of(cls, names: tuple[str, ...]) -> Rotation:
        return cls(names, tuple(Availability() for _ in names))

    def choose(self, now: float) -> int:
        """The first that is free, else the one that is free first."""
        free = [i for i, one in enumerate(self.availability) if one.until <= now]
        return free[0] if free else min(range(len(self.availability)), key=lambda i: self.availability[i].until)

    def worked(self, index: int) -> Rotation:
        return self if self.availability[index] == Availability() else self._with(index, Availability())

    def limited(
        self,
        index: int,
        patience: Patience,
        outcome: Outcome,
        told: float | None,
        now: float,
        *,
        iteration: int,
        jitter: float,
    ) -> tuple[Rotation, Limit]:
        """After an agent ran into a limit."""
        before = self.availability[index]
        tries = before.tries + 1
        guesses = 0 if told is not None else before.guesses + 1
        until = next_try(patience, outcome, told, now, tries=tries, guesses=guesses, jitter=jitter)
        others = len(self.availability) > 1
        if others and patience.retries and guesses > patience.retries:
            until = math.inf  # the others go on without it
        since = before.since if guesses > 1 else iteration
        rotation = self._with(index, Availability(until, tries, guesses, since))
        chosen = rotation.choose(now)
        free = rotation.availability[chosen].until <= now
        return rotation, Limit(
            until=until,
            next_at=rotation.availability[chosen].until,
            told=told is not None,
            guesses=guesses,
            since=since,
            fallback=rotation.names[chosen] if free and chosen != index else None,
        )

    def _with(self, index: int, one: Availability) -> Rotation:
        availability = tuple(one if i == index else p for i, p in enumerate(self.availability))
        return msgspec.structs.replace(self, availability=availability)
