"""Whose turn it is: the first agent that no limit holds back. Without a list of agents there is one only."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from ralph.loop.waits import Limit, Patience, next_try

if TYPE_CHECKING:
    from ralph.judging.judge import Outcome


class Post(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known about the limit of one agent. All of it is forgotten when the agent worked."""

    until: float = 0.0
    tries: int = 0
    guesses: int = 0
    since: int = 0


class Rota(msgspec.Struct, frozen=True):
    """The agents in order of preference, each with its post."""

    names: tuple[str, ...]
    posts: tuple[Post, ...]

    @classmethod
    def of(cls, names: tuple[str, ...]) -> Rota:
        return cls(names, tuple(Post() for _ in names))

    def choose(self, now: float) -> int:
        """The first that is free, else the one that is free first."""
        free = [i for i, post in enumerate(self.posts) if post.until <= now]
        return free[0] if free else min(range(len(self.posts)), key=lambda i: self.posts[i].until)

    def worked(self, index: int) -> Rota:
        return self if self.posts[index] == Post() else self._with(index, Post())

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
    ) -> tuple[Rota, Limit]:
        """After an agent ran into a limit."""
        before = self.posts[index]
        tries = before.tries + 1
        guesses = 0 if told is not None else before.guesses + 1
        until = next_try(patience, outcome, told, now, tries=tries, guesses=guesses, jitter=jitter)
        others = len(self.posts) > 1
        if others and patience.retries and guesses > patience.retries:
            until = math.inf  # the others go on without it
        since = before.since if guesses > 1 else iteration
        rota = self._with(index, Post(until, tries, guesses, since))
        chosen = rota.choose(now)
        free = rota.posts[chosen].until <= now
        return rota, Limit(
            until=until,
            next_at=rota.posts[chosen].until,
            told=told is not None,
            guesses=guesses,
            since=since,
            relief=rota.names[chosen] if free and chosen != index else None,
        )

    def _with(self, index: int, post: Post) -> Rota:
        posts = tuple(post if i == index else p for i, p in enumerate(self.posts))
        return msgspec.structs.replace(self, posts=posts)
