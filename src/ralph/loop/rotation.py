"""Which agent runs next: the first that no limit holds back."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from ralph.loop.waits import Limit, Patience, next_try

if TYPE_CHECKING:
    from ralph.judging.judge import Outcome


class Availability(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known about the limit of one agent. It is reset when the agent works again."""

    #: when to try it again, seconds since the epoch
    until: float = 0.0
    #: limits in a row, all of them and those without a reported end
    tries: int = 0
    guesses: int = 0
    #: the iteration of the first guess
    since: int = 0


class Rotation(msgspec.Struct, frozen=True):
    """The agents in order of preference, each with its availability."""

    names: tuple[str, ...]
    availability: tuple[Availability, ...]

    @classmethod
    def of(cls, names: tuple[str, ...]) -> Rotation:
        return cls(names, tuple(Availability() for _ in names))

    def choose(self, now: float) -> int:
        """The first agent that is free now, or else the one that is free soonest."""
        free = [i for i, one in enumerate(self.availability) if one.until <= now]
        return free[0] if free else min(range(len(self.availability)), key=lambda i: self.availability[i].until)

    def worked(self, index: int) -> Rotation:
        return self if self.availability[index] == Availability() else self._with(index, Availability())

    def limited(
        self,
        index: int,
        patience: Patience,
        outcome: Outcome,
        reported: float | None,
        now: float,
        *,
        iteration: int,
        jitter: float,
    ) -> Rotation:
        """After an agent ran into a limit, which ends at the time `reported` if the provider gave one."""
        before = self.availability[index]
        tries = before.tries + 1
        guesses = 0 if reported is not None else before.guesses + 1
        until = next_try(patience, outcome, reported, now, tries=tries, guesses=guesses, jitter=jitter)
        others = len(self.availability) > 1
        if others and patience.retries and guesses > patience.retries:
            until = math.inf  # the others continue without it
        since = before.since if guesses > 1 else iteration
        return self._with(index, Availability(until, tries, guesses, since))

    def limit(self, index: int, now: float) -> Limit | None:
        """The limit that holds an agent back; None if the agent worked last time."""
        one = self.availability[index]
        if not one.tries:
            return None
        chosen = self.choose(now)
        next_at = self.availability[chosen].until
        return Limit(
            until=one.until,
            next_at=next_at,
            reported=not one.guesses,
            guesses=one.guesses,
            since=one.since,
            fallback=self.names[chosen] if next_at <= now and chosen != index else None,
        )

    def _with(self, index: int, one: Availability) -> Rotation:
        availability = tuple(one if i == index else other for i, other in enumerate(self.availability))
        return msgspec.structs.replace(self, availability=availability)
