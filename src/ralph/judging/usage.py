"""Token counts: their sums, and what an agent has used so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ralph.judging.costs import Cost
from ralph.transcripts.events import Usage

if TYPE_CHECKING:
    from ralph.judging.costs import CostOf

_TOKENS = (
    *("prompt_tokens", "completion_tokens", "total_tokens"),
    *("cached_tokens", "cache_write_tokens", "reasoning_tokens"),
)


def add_usage(total: Usage, more: Usage) -> Usage:
    """Sums what is known; what is unknown on both sides stays None."""
    return Usage(
        prompt_tokens=_both(total.prompt_tokens, more.prompt_tokens),
        completion_tokens=_both(total.completion_tokens, more.completion_tokens),
        total_tokens=_both(known_total(total), known_total(more)),
        model=more.model or total.model,
        cached_tokens=_both(total.cached_tokens, more.cached_tokens),
        cache_write_tokens=_both(total.cache_write_tokens, more.cache_write_tokens),
        reasoning_tokens=_both(total.reasoning_tokens, more.reasoning_tokens),
        cost_usd=_both(total.cost_usd, more.cost_usd),
        at_least=total.at_least or more.at_least,
    )


def _both(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else a + b


def subtract_usage(total: Usage, known: Usage) -> Usage:
    """The part of `total` beyond `known`; all of it if `known` is larger."""
    left = {
        name: value - (getattr(known, name) or 0)
        for name in (*_TOKENS, "cost_usd")
        if (value := getattr(total, name)) is not None
    }
    return total if any(value < 0 for value in left.values()) else msgspec.structs.replace(total, **left)


def known_total(usage: Usage) -> int | None:
    """All tokens, as reported or as the sum of prompt and completion."""
    if usage.total_tokens is not None:
        return usage.total_tokens
    if usage.prompt_tokens is None and usage.completion_tokens is None:
        return None
    return (usage.prompt_tokens or 0) + (usage.completion_tokens or 0)


class UsageCount:
    """What an agent has used in an iteration: its own totals, plus what its messages reported since the last one."""

    def __init__(self, cost_of: CostOf | None = None, before: Usage | None = None) -> None:
        """`before` is what a resumed session reported before, if it will report it again."""
        self._before = self._repeated = before
        self._totals: Usage | None = None
        self._reported: Usage | None = None
        self._interim: Usage | None = None
        self.cost = Cost(cost_of)

    @property
    def seen(self) -> bool:
        return self._totals is not None or self._interim is not None

    @property
    def total(self) -> Usage:
        """The sum; a lower bound if the agent has not reported a total since its last message."""
        if self._interim is None:
            return self._totals or Usage()
        return msgspec.structs.replace(add_usage(self._totals or Usage(), self._interim), at_least=True)

    @property
    def reported(self) -> Usage:
        """The same as the agent counts it: including a resumed session's usage, if the agent repeats it."""
        before = self._reported or self._repeated or Usage()
        return before if self._interim is None else add_usage(before, self._interim)

    def add(self, usage: Usage, model: str | None) -> None:
        """`model` is the agent's, for usage that names none."""
        if usage.interim:
            self._interim = add_usage(self._interim or Usage(), usage)
        else:
            if known_total(usage) is not None:
                self._interim = None  # the agent's own count includes them
            self._reported = add_usage(self._reported or Usage(), usage)
            if self._before is not None:
                usage, self._before = subtract_usage(usage, self._before), None
            self._totals = add_usage(self._totals or Usage(), usage)
        self.cost.add(usage if usage.model else msgspec.structs.replace(usage, model=model))
