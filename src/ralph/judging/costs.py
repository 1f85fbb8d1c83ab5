"""What a run costs: as the agent reports it, or else by a price table, or else unknown."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from ralph.system.text import AT_LEAST

if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.judging.prices import Prices
    from ralph.transcripts.events import Usage


CostOf: TypeAlias = "Callable[[Usage], float | None]"


class CostFrom(StrEnum):
    REPORTED = "reported"
    PRICES = "prices"


class _Sum(msgspec.Struct):
    """Once the agent reports a cost, that is the cost: price-table estimates are dropped."""

    reported: float | None = None
    estimated: float | None = None
    #: whether part of the estimate is unknown
    gaps: bool = False

    def add(self, usage: Usage, cost_of: CostOf | None) -> None:
        if usage.cost_usd is not None:
            self.reported = (self.reported or 0.0) + usage.cost_usd
        elif cost_of is not None and self.reported is None:
            price = cost_of(usage)
            if price is None:
                self.gaps = self.gaps or _counts(usage)
            else:
                self.estimated = (self.estimated or 0.0) + price

    @property
    def usd(self) -> float | None:
        return self.estimated if self.reported is None else self.reported


class Cost:
    """The cost of one iteration: that of the agent's own totals, plus that of its messages since the last one."""

    def __init__(self, cost_of: CostOf | None) -> None:
        self._cost_of = cost_of
        self._totals = _Sum()
        self._interim = _Sum()

    def add(self, usage: Usage) -> None:
        if usage.interim:
            self._interim.add(usage, self._cost_of)
            return
        if _counts(usage) or usage.cost_usd is not None:
            self._interim = _Sum()
        self._totals.add(usage, self._cost_of)

    @property
    def usd(self) -> float | None:
        known = [usd for usd in (self._totals.usd, self._interim.usd) if usd is not None]
        return sum(known) if known else None

    @property
    def source(self) -> CostFrom | None:
        if self._totals.reported is not None or self._interim.reported is not None:
            return CostFrom.REPORTED
        return None if self.usd is None else CostFrom.PRICES

    @property
    def partly(self) -> bool:
        """Whether part of it is unknown."""
        return any(part.gaps and part.reported is None for part in (self._totals, self._interim))


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

    def describe(self, usd: float | None, iterations: int, *, at_least: bool = False) -> str:
        """`at_least`: some of the tokens may be missing."""
        if usd is None:
            return "unknown"
        how = [
            *(["reported by the agent"] if self.reported else []),
            *(["by price table"] if self.by_prices else []),
        ]
        total = "1 iteration" if iterations == 1 else f"{iterations} iterations"
        gaps = f"; unknown in {self.unknown} of {total}" if self.unknown else ""
        lower = AT_LEAST if at_least or self.unknown else ""
        return f"{lower}${usd:.4f} ({' and '.join(how)}{gaps})"

    def facts(self, usd: float | None, *, at_least: bool = False) -> dict[str, Any]:
        lower = usd is not None and (at_least or self.unknown > 0)
        counts = {"reported": self.reported, "by_prices": self.by_prices, "unknown": self.unknown}
        return {"usd": usd, **({"at_least": True} if lower else {}), **counts}


def not_enforced(model: str | None) -> str:
    """The notice after an iteration whose cost is unknown."""
    why = f"no price is known for {model}" if model else "it did not report its model either (set it with --model)"
    return f"--max-cost cannot be enforced: the agent did not report its cost, and {why}"


def _counts(usage: Usage) -> bool:
    return any(n is not None for n in (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens))


def pricing(prices: Prices, model: str | None) -> CostOf:
    """Prices usage by the model that the agent reports, or else by the configured one."""
    return lambda usage: prices.cost(usage, usage.model or model)
