"""Copilot's tokens. The recorded version does not print them, but its log of events has them, and others may."""

from __future__ import annotations

from typing import Any

from ralph.transcripts.events import TranscriptEvent, Usage, UsageEvent
from ralph.transcripts.json_lines import get_count, get_dict, get_str


class RunUsage:
    """Counts the tokens once: call by call, else the totals of the session, else what the messages report."""

    def __init__(self) -> None:
        self._counted = False
        self._output_tokens: int | None = None

    def call(self, data: dict[str, Any], model: str | None = None) -> list[TranscriptEvent]:
        prompt, completion = get_count(data, "inputTokens"), get_count(data, "outputTokens")
        if prompt is None and completion is None:
            return []
        self._counted = True
        # The CLI's own summary counts cached tokens as part of the input.
        usage = Usage(
            prompt_tokens=prompt,
            completion_tokens=completion,
            model=model or get_str(data, "model"),
            cached_tokens=get_count(data, "cacheReadTokens"),
            cache_write_tokens=get_count(data, "cacheWriteTokens"),
            reasoning_tokens=get_count(data, "reasoningTokens"),
        )
        return [UsageEvent(usage)]

    def message(self, data: dict[str, Any]) -> list[TranscriptEvent]:
        tokens = get_count(data, "outputTokens")
        if tokens is None:
            return []
        self._output_tokens = (self._output_tokens or 0) + tokens
        return [] if self._counted else [UsageEvent(Usage(completion_tokens=tokens, interim=True))]

    def shutdown(self, data: dict[str, Any]) -> list[TranscriptEvent]:
        metrics = {} if self._counted else get_dict(data, "modelMetrics")
        return [e for model in metrics for e in self.call(get_dict(metrics[model], "usage"), model)]

    def end(self, total: dict[str, Any]) -> list[TranscriptEvent]:
        """What the last line or the messages report, if nothing was counted before."""
        if self._counted:
            return []
        events = self.call(total)
        if not events and self._output_tokens is not None:
            self._counted = True
            # The prompts are missing.
            events = [UsageEvent(Usage(completion_tokens=self._output_tokens, at_least=True))]
        return events
