"""What cline's model calls took: each call tells its own tokens, and the result of the run the sum."""

from __future__ import annotations

from typing import Any

import msgspec

from ralph.transcripts.events import TranscriptEvent, Usage, UsageEvent
from ralph.transcripts.json_lines import get_count, get_float


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

    def call_event(self, event: dict[str, Any]) -> list[TranscriptEvent]:
        prompt, output = get_count(event, "inputTokens"), get_count(event, "outputTokens")
        read, written = get_count(event, "cacheReadTokens"), get_count(event, "cacheWriteTokens")
        return self.call(prompt, output, read, written, get_float(event, "totalCost"))

    def call(
        self, prompt: int | None, output: int | None, read: int | None, written: int | None, cost: float | None
    ) -> list[TranscriptEvent]:
        """A call's own tokens. Its `totalCost` is the run's so far."""
        more = None
        if cost:
            before = self._sum.cost or 0.0
            more = cost - before if cost > before else None
        if read or written:
            prompt = _with_cached(prompt, read, written)
        return self._add(prompt, output, read, written, more, None)

    def total(self, usage: dict[str, Any], model: str | None) -> list[TranscriptEvent]:
        counts = _counts(usage)
        told = self._sum
        return self._add(
            _more(counts.prompt, told.prompt),
            _more(counts.output, told.output),
            _more(counts.read, told.read),
            _more(counts.written, told.written),
            counts.cost - (told.cost or 0.0) if counts.cost and counts.cost > (told.cost or 0.0) else None,
            model,
        )

    def _add(
        self,
        prompt: int | None,
        output: int | None,
        read: int | None,
        written: int | None,
        cost: float | None,
        model: str | None,
    ) -> list[TranscriptEvent]:
        if not (prompt or output or read or written or cost):
            return []
        told = self._sum
        if prompt is not None:
            told.prompt = prompt + (told.prompt or 0)
        if output is not None:
            told.output = output + (told.output or 0)
        if read is not None:
            told.read = read + (told.read or 0)
        if written is not None:
            told.written = written + (told.written or 0)
        if cost:
            told.cost = (told.cost or 0.0) + cost
        return [UsageEvent(Usage(prompt, output, None, model, read, written, None, cost))]


def _counts(usage: dict[str, Any]) -> _Counts:
    prompt, read, written = (get_count(usage, k) for k in ("inputTokens", "cacheReadTokens", "cacheWriteTokens"))
    cost = get_float(usage, "totalCost")
    return _Counts(_with_cached(prompt, read, written), get_count(usage, "outputTokens"), read, written, cost or None)


def _with_cached(prompt: int | None, read: int | None, written: int | None) -> int | None:
    cached = (read or 0) + (written or 0)
    if prompt is not None and cached > prompt:
        return prompt + cached  # some providers leave the cached ones out of the input
    return prompt


def _more(total: int | None, told: int | None) -> int | None:
    """What a sum has beyond its parts. A zero where no part told anything says nothing either."""
    return total - (told or 0) if total is not None and total > (told or 0) else None
