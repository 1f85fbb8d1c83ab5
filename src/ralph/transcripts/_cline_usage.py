"""What cline's model calls took: each call tells its own tokens, and the result of the run the sum."""

from __future__ import annotations

from typing import Any

import msgspec

from ralph.transcripts._json import get_float, get_int
from ralph.transcripts.events import TranscriptEvent, Usage, UsageEvent


class _Counts(msgspec.Struct):
    prompt: int | None = None
    output: int | None = None
    read: int | None = None
    written: int | None = None
    cost: float | None = None


class Spent:
    """Follows the calls, so that the sum at the end adds only what no call told (a subagent's, the cost)."""

    def __init__(self) -> None:
        self._sum = _Counts()

    def call(self, event: dict[str, Any]) -> list[TranscriptEvent]:
        """A call's own tokens. Its `totalCost` is the run's so far."""
        counts = _counts(event)
        counts.cost = None
        cost = get_float(event, "totalCost")
        if cost is not None and cost > (self._sum.cost or 0.0):
            counts.cost = cost - (self._sum.cost or 0.0)
        return self._add(counts, None)

    def total(self, usage: dict[str, Any], model: str | None) -> list[TranscriptEvent]:
        counts = _counts(usage)
        told = self._sum
        return self._add(
            _Counts(
                _more(counts.prompt, told.prompt),
                _more(counts.output, told.output),
                _more(counts.read, told.read),
                _more(counts.written, told.written),
                counts.cost - (told.cost or 0.0) if counts.cost and counts.cost > (told.cost or 0.0) else None,
            ),
            model,
        )

    def _add(self, new: _Counts, model: str | None) -> list[TranscriptEvent]:
        if not any((new.prompt, new.output, new.read, new.written, new.cost)):
            return []
        told = self._sum
        self._sum = _Counts(
            _plus(told.prompt, new.prompt),
            _plus(told.output, new.output),
            _plus(told.read, new.read),
            _plus(told.written, new.written),
            (told.cost or 0.0) + new.cost if new.cost else told.cost,
        )
        return [
            UsageEvent(
                Usage(
                    prompt_tokens=new.prompt,
                    completion_tokens=new.output,
                    model=model,
                    cached_tokens=new.read,
                    cache_write_tokens=new.written,
                    cost_usd=new.cost,
                )
            )
        ]


def _counts(usage: dict[str, Any]) -> _Counts:
    prompt, read, written = (get_int(usage, k) for k in ("inputTokens", "cacheReadTokens", "cacheWriteTokens"))
    cached = (read or 0) + (written or 0)
    if prompt is not None and cached > prompt:
        prompt += cached  # some providers leave the cached ones out of the input
    cost = get_float(usage, "totalCost")
    return _Counts(prompt, get_int(usage, "outputTokens"), read, written, cost or None)


def _more(total: int | None, told: int | None) -> int | None:
    """What a sum has beyond its parts. A zero where no part told anything says nothing either."""
    return total - (told or 0) if total is not None and total > (told or 0) else None


def _plus(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else a + b
