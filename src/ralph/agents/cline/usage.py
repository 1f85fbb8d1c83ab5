"""Cline's tokens and costs: each model call reports its own, and the result of the run reports the sum."""

from __future__ import annotations

from typing import Any

from ralph.transcripts.events import TranscriptEvent, Usage, UsageEvent
from ralph.transcripts.json_lines import get_count, get_float


class RunUsage:
    """Adds up what was reported, so that the sum at the end counts only what is missing (a subagent's, the cost)."""

    def __init__(self) -> None:
        self._reported: dict[str, Any] = {}

    def call(self, event: dict[str, Any]) -> list[TranscriptEvent]:
        """A call's own tokens. Its `totalCost` is that of the run so far."""
        counts = _counts(event)
        cost = self._missing({"cost_usd": counts.pop("cost_usd", 0)})
        return self._report(counts | cost)

    def total(self, usage: dict[str, Any], model: str | None) -> list[TranscriptEvent]:
        """What the sum of the run has beyond its calls."""
        return self._report(self._missing(_counts(usage)), model)

    def _missing(self, counts: dict[str, Any]) -> dict[str, Any]:
        beyond = {name: count - self._reported.get(name, 0) for name, count in counts.items()}
        return {name: count for name, count in beyond.items() if count > 0}

    def _report(self, counts: dict[str, Any], model: str | None = None) -> list[TranscriptEvent]:
        if not any(counts.values()):
            return []
        for name, count in counts.items():
            self._reported[name] = self._reported.get(name, 0) + count
        return [UsageEvent(Usage(model=model, **counts))]


def _counts(usage: dict[str, Any]) -> dict[str, Any]:
    """The numbers that are there, by the names that `Usage` has for them."""
    prompt, read, written = (get_count(usage, k) for k in ("inputTokens", "cacheReadTokens", "cacheWriteTokens"))
    cached = (read or 0) + (written or 0)
    if prompt is not None and cached > prompt:
        prompt += cached  # some providers leave cached tokens out of the input
    counts = {
        "prompt_tokens": prompt,
        "completion_tokens": get_count(usage, "outputTokens"),
        "cached_tokens": read,
        "cache_write_tokens": written,
        "cost_usd": get_float(usage, "totalCost"),
    }
    return {name: count for name, count in counts.items() if count is not None}
