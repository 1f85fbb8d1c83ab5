"""Numbers in words: tools, usage and changes, for the screen and the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ralph.config.durations import format_duration
from ralph.judging.usage import known_total
from ralph.system.text import AT_LEAST

if TYPE_CHECKING:
    from ralph.judging.observe import Observation
    from ralph.transcripts.events import Usage
    from ralph.tree.snapshot import Changes


def plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def describe_tools(seen: Observation) -> str:
    counts = seen.tools
    names = ", ".join(f"{name} ×{n}" if n > 1 else name for name, n in seen.tool_names.most_common(6))
    results = [f"{counts.ok} ok"]
    if counts.fail:
        results.append(f"{counts.fail} failed")
    if counts.unknown:
        results.append(f"{counts.unknown} unknown")
    if seen.open_tools:
        results.append(f"{len(seen.open_tools)} unfinished")
    took = f" in {format_duration(seen.tool_ms / 1000)}" if seen.tool_ms else ""
    return f"{plural(counts.started, 'tool call')} ({names}): {', '.join(results)}{took}"


def describe_usage(usage: Usage) -> str:
    parts = []
    lower = AT_LEAST if usage.at_least else ""
    if usage.prompt_tokens is not None:
        cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
        parts.append(f"{lower}{usage.prompt_tokens:,} in{cached}")
    if usage.completion_tokens is not None:
        parts.append(f"{lower}{usage.completion_tokens:,} out")
    total = known_total(usage)
    if total is not None:
        parts.append(f"{lower}{total:,} tokens")
    if usage.cost_usd is not None:
        parts.append(f"{lower}${usage.cost_usd:.4f}")
    if usage.model:
        parts.append(usage.model)
    return " · ".join(parts)


def describe_changes(changes: Changes) -> str:
    if not changes.changed:
        return "nothing changed"
    parts = []
    if changes.commits is None:
        parts.append("an unknown number of commits")
    elif changes.commits:
        parts.append(plural(changes.commits, "commit"))
    if changes.files:
        least = "at least " if changes.unknown else ""
        parts.append(f"{least}{plural(len(changes.files), 'file')} changed")
    elif changes.unknown:
        parts.append(f"unknown whether files changed ({changes.unknown})")
    return ", ".join(parts) or "changed"
