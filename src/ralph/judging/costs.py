"""What a run costs: as the agent reports it, or else by a price table, or else unknown."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.judging.prices import Prices
    from ralph.transcripts.events import Usage


CostOf: TypeAlias = "Callable[[Usage], float | None]"


class CostFrom(StrEnum):
    REPORTED = "reported"
    PRICES = "prices"


class Cost:
    """The cost of one iteration. Once the agent reports a cost, that is the cost: price-table estimates are dropped."""

    def __init__(self, cost_of: CostOf | None) -> None:
        self._cost_of = cost_of
        self._reported: float | None = None
        self._estimated: float | None = None
        self._gaps = False

    def add(self, usage: Usage) -> None:
        if usage.cost_usd is not None:
            self._reported = (self._reported or 0.0) + usage.cost_usd
        elif self._cost_of is not None and self._reported is None:
            price = self._cost_of(usage)
            if price is None:
                self._gaps = self._gaps or _counts(usage)
            else:
                self._estimated = (self._estimated or 0.0) + price

    @property
    def usd(self) -> float | None:
        return self._estimated if self._reported is None else self._reported

    @property
    def source(self) -> CostFrom | None:
        if self._reported is not None:
            return CostFrom.REPORTED
        return None if self._estimated is None else CostFrom.PRICES

    @property
    def partly(self) -> bool:
        """Whether part of it is unknown."""
        return self._reported is None and self._gaps


class RunCosts(msgspec.Struct, frozen=True, omit_defaults=True):
    """In how many iterations of a run the cost was reported, computed from prices, or unknown."""

    reported: int = 0
    by_prices: int = 0
    unknown: int = 0

    def plus(self, cost: Cost) -> RunCosts:
        """With one more iteration."""
        return RunCosts(
            reported=self.reported + (cost.source is CostFrom.REPORTED),
            by_prices=self.by_prices + (cost.source is CostFrom.PRICES),
            unknown=self.unknown + (cost.source is None or cost.partly),
        )

    def describe(self, usd: float | None, iterations: int) -> str:
        if usd is None:
            return "unknown"
        how = [
            *(["reported by the agent"] if self.reported else []),
            *(["by price table"] if self.by_prices else []),
        ]
        total = "1 iteration" if iterations == 1 else f"{iterations} iterations"
        gaps = f"; unknown in {self.unknown} of {total}" if self.unknown else ""
        return f"${usd:.4f} ({' and '.join(how)}{gaps})"

    def facts(self, usd: float | None) -> dict[str, Any]:
        return {"usd": usd, "reported": self.reported, "by_prices": self.by_prices, "unknown": self.unknown}


def not_enforced(model: str | None) -> str:
    """The notice after an iteration whose cost is unknown."""
    why = f"no price is known for {model}" if model else "it did not report its model either (set it with --model)"
    return f"--max-cost cannot be enforced: the agent did not report its cost, and {why}"


def _counts(usage: Usage) -> bool:
    return any(n is not None for n in (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens))


def pricing(prices: Prices, model: str | None) -> CostOf:
    """Prices usage by the model that the agent reports, or else by the configured one."""
    return lambda usage: prices.cost(usage, usage.model or model)
