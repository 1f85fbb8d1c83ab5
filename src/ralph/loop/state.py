"""What a run has come to: written with the end of each iteration, so that another process can go on from there."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from ralph.judging.costs import RunCosts
from ralph.loop.breaker import Breaker
from ralph.loop.calls import Calls
from ralph.loop.rotation import Post, Rota
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


class Standing(msgspec.Struct, omit_defaults=True):
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
    rota: Rota = Rota((), ())
    calls: Calls = Calls()
    #: by the name of the agent
    sessions: dict[str, Session] = {}
    #: what the next prompt must say
    notes: list[str] = []
    #: files that were changed and must not be
    trespassed: list[str] = []
    #: what is being waited for before the next iteration
    wait: Wait | None = None


def saved(standing: Standing) -> dict[str, Any]:
    """For `iteration_end`, which has the breaker in a field of its own."""
    posts = tuple(msgspec.structs.replace(p, until=min(p.until, _NEVER)) for p in standing.rota.posts)
    rota = msgspec.structs.replace(standing.rota, posts=posts)
    fields: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(standing, rota=rota))
    fields.pop("breaker", None)
    return fields


def restored(iteration_end: dict[str, Any]) -> Standing:
    """The opposite of `saved`. Raises msgspec.ValidationError for what is none."""
    standing = msgspec.convert(iteration_end["state"], Standing)
    standing.breaker = msgspec.convert(iteration_end.get("breaker", {}), Breaker)
    if len(standing.rota.names) != len(standing.rota.posts):
        raise msgspec.ValidationError("names without posts")
    standing.rota = msgspec.structs.replace(
        standing.rota,
        posts=tuple(
            msgspec.structs.replace(p, until=math.inf) if p.until >= _NEVER else p for p in standing.rota.posts
        ),
    )
    return standing


def begun_anew(standing: Standing, names: tuple[str, ...], *, ended: str | None) -> Standing:
    """For a run that is gone on with by the agents `names`. `ended` says how it ended, if it came to an end.

    What ended it, a person has looked at: that starts to count from the beginning. A run that died goes on as it was.
    """
    posts = dict(zip(standing.rota.names, standing.rota.posts, strict=True))
    standing = msgspec.structs.replace(
        standing,
        rota=Rota(names, tuple(_free(posts.get(name, Post())) for name in names)),
        breaker=standing.breaker if standing.wait is not None else standing.breaker.cooled_down(),
    )
    if ended is not None:
        standing.failures = standing.denials = 0
    return standing


def _free(post: Post) -> Post:
    """Who could be freed only by a person is tried again."""
    return Post() if math.isinf(post.until) else post
