"""The limits of a run, and which of them is reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ralph.config.durations import format_duration
from ralph.judging.observe import known_total

if TYPE_CHECKING:
    from ralph.transcripts.events import Usage


class Limits(msgspec.Struct, frozen=True):
    """0 is no limit."""

    iterations: int = 100
    runtime: float = 0.0
    cost: float = 0.0
    tokens: int = 0
    failures: int = 5
    calls_per_hour: int = 0


def budget_reached(limits: Limits, usage: Usage, elapsed: float) -> str | None:
    """A limit that holds at any moment, also within an iteration."""
    if limits.runtime and elapsed >= limits.runtime:
        return f"the run time of {format_duration(limits.runtime)} is used up"
    if limits.cost and usage.cost_usd is not None and usage.cost_usd >= limits.cost:
        return f"the cost has reached ${usage.cost_usd:.4g} (limit ${limits.cost:.4g})"
    tokens = known_total(usage)
    if limits.tokens and tokens is not None and tokens >= limits.tokens:
        return f"{tokens:,} tokens were used (limit {limits.tokens:,})"
    return None


def used_up(limits: Limits, usage: Usage, elapsed: float, iterations: int) -> str | None:
    """The limit that leaves no room for another iteration."""
    budget = budget_reached(limits, usage, elapsed)
    if budget is not None or not limits.iterations or iterations < limits.iterations:
        return budget
    return "the 1 iteration is used up" if limits.iterations == 1 else f"all {limits.iterations} iterations are used up"
