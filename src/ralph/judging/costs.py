"""What a run costs, and how that is known: as the agent reports it, else by a table of prices, else not at all."""

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
    """Of one iteration. Once the agent names its cost, that is the cost: nothing is reckoned on top."""

    def __init__(self, cost_of: CostOf | None) -> None:
        self._cost_of = cost_of
        self._reported: float | None = None
        self._reckoned: float | None = None
        self._gaps = False

    def add(self, usage: Usage) -> None:
        if usage.cost_usd is not None:
            self._reported = (self._reported or 0.0) + usage.cost_usd
        elif self._cost_of is not None and self._reported is None:
            price = self._cost_of(usage)
            if price is None:
                self._gaps = self._gaps or _counts(usage)
            else:
                self._reckoned = (self._reckoned or 0.0) + price

    @property
    def usd(self) -> float | None:
        return self._reckoned if self._reported is None else self._reported

    @property
    def source(self) -> CostFrom | None:
        if self._reported is not None:
            return CostFrom.REPORTED
        return None if self._reckoned is None else CostFrom.PRICES

    @property
    def partly(self) -> bool:
        """Whether some of it is not known."""
        return self._reported is None and self._gaps


class RunCosts(msgspec.Struct, omit_defaults=True):
    """Of a run: how many iterations each way."""

    reported: int = 0
    by_prices: int = 0
    unknown: int = 0

    def add(self, cost: Cost) -> None:
        match cost.source:
            case CostFrom.REPORTED:
                self.reported += 1
            case CostFrom.PRICES:
                self.by_prices += 1
        self.unknown += cost.source is None or cost.partly

    def describe(self, usd: float | None, iterations: int) -> str:
        if usd is None:
            return "unknown"
        how = [
            *(["reported by the agent"] if self.reported else []),
            *(["by price table"] if self.by_prices else []),
        ]
        gaps = f"; not known in {self.unknown} of {iterations} iterations" if self.unknown else ""
        return f"${usd:.4f} ({' and '.join(how)}{gaps})"

    def facts(self, usd: float | None) -> dict[str, Any]:
        return {"usd": usd, "reported": self.reported, "by_prices": self.by_prices, "unknown": self.unknown}


def not_enforced(model: str | None) -> str:
    """What is said after an iteration whose cost is not known."""
    why = f"no price is known for {model}" if model else "it did not name its model either (--model would)"
    return f"--max-cost cannot be enforced: the agent did not report its cost, and {why}"


def _counts(usage: Usage) -> bool:
    return any(n is not None for n in (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens))


def pricing(prices: Prices, model: str | None) -> CostOf:
    """Prices usage by the model that the agent names, or else by the configured one."""
    return lambda usage: prices.cost(usage, usage.model or model)
