"""The limits of a run, and which of them it has reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ralph.config.durations import format_duration
from ralph.judging.usage import known_total
from ralph.loop.describe import plural

if TYPE_CHECKING:
    from ralph.config.settings import Settings
    from ralph.transcripts.events import Usage


class Limits(msgspec.Struct, frozen=True):
    """0 disables a limit."""

    iterations: int = 100
    runtime: float = 0.0
    cost: float = 0.0
    tokens: int = 0
    failures: int = 5
    calls_per_hour: int = 0

    @classmethod
    def of(cls, settings: Settings) -> Limits:
        return cls(
            settings.max_iterations,
            settings.max_runtime,
            settings.max_cost,
            settings.max_tokens,
            settings.max_failures,
            settings.max_calls_per_hour,
        )


def describe_limits(limits: Limits) -> str:
    parts = [plural(limits.iterations, "iteration") if limits.iterations else "unlimited iterations"]
    if limits.runtime:
        parts.append(format_duration(limits.runtime))
    if limits.cost:
        parts.append(f"${limits.cost:g}")
    if limits.tokens:
        parts.append(f"{limits.tokens:,} tokens")
    if limits.calls_per_hour:
        parts.append(f"{plural(limits.calls_per_hour, 'call')} an hour")
    failures = plural(limits.failures, "failure") if limits.failures else "unlimited failures"
    parts.append(f"{failures} in a row")
    return ", ".join(parts)


def budget_reached(limits: Limits, usage: Usage, elapsed: float) -> str | None:
    """The limit that is reached, of those that hold at any moment, also during an iteration."""
    if limits.runtime and elapsed >= limits.runtime:
        return f"reached the run time limit of {format_duration(limits.runtime)}"
    lower = "at least " if usage.at_least else ""
    if limits.cost and usage.cost_usd is not None and usage.cost_usd >= limits.cost:
        return f"the cost has reached {lower}${usage.cost_usd:.4g} (limit ${limits.cost:.4g})"
    tokens = known_total(usage)
    if limits.tokens and tokens is not None and tokens >= limits.tokens:
        return f"{lower}{tokens:,} tokens were used (limit {limits.tokens:,})"
    return None


def used_up(limits: Limits, usage: Usage, elapsed: float, iterations: int) -> str | None:
    """The reached limit that leaves no room for another iteration."""
    budget = budget_reached(limits, usage, elapsed)
    if budget is not None or not limits.iterations or iterations < limits.iterations:
        return budget
    return f"reached the limit of {plural(limits.iterations, 'iteration')}"
