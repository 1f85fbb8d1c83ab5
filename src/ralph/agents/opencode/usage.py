"""The tokens of one step, which mean different things in different versions of opencode."""

from __future__ import annotations

from typing import Any

from ralph.transcripts.events import Usage
from ralph.transcripts.json_lines import get_count, get_dict, get_float


def step_usage(part: dict[str, Any]) -> Usage | None:
    """opencode counts cached tokens apart from the input, and newer versions count reasoning apart from the output."""
    tokens = get_dict(part, "tokens")
    cache = get_dict(tokens, "cache")
    read, written = get_count(cache, "read"), get_count(cache, "write")
    prompt, output = get_count(tokens, "input"), get_count(tokens, "output")
    reasoning, total = get_count(tokens, "reasoning"), get_count(tokens, "total")
    if prompt is not None and not (_includes_cached(part, total, written) and prompt >= (read or 0)):
        prompt += (read or 0) + (written or 0)
    if output is not None and reasoning and total == (prompt or 0) + output + reasoning:
        output += reasoning
    # opencode writes 0 for a model whose price it does not know.
    cost = get_float(part, "cost") or None
    if prompt is None and output is None and total is None and cost is None:
        return None
    return Usage(prompt, output, total, None, read, written, reasoning, cost)


def _includes_cached(part: dict[str, Any], total: int | None, written: int | None) -> bool:
    """Whether the input may include the cached tokens, as it does in 1.0.61 unless the provider is Anthropic.

    Its steps have no total and no snapshot; in a repository, those of 1.1.31 have a snapshot.
    """
    return total is None and not written and part.get("snapshot") is None
