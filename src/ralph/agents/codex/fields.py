"""Fields that both generations of Codex's JSON share."""

from __future__ import annotations

from typing import Any

from ralph.transcripts.json_lines import get_count, get_list, get_str

_COUNTS = {
    "prompt_tokens": "input_tokens",  # includes the cached ones
    "cached_tokens": "cached_input_tokens",
    "cache_write_tokens": "cache_write_input_tokens",
    "completion_tokens": "output_tokens",
    "reasoning_tokens": "reasoning_output_tokens",
    "total_tokens": "total_tokens",
}


def token_counts(usage: dict[str, Any]) -> dict[str, Any]:
    """Codex's counts under our names; a count that it does not give is absent."""
    return {ours: count for ours, theirs in _COUNTS.items() if (count := get_count(usage, theirs)) is not None}


def content_text(result: dict[str, Any]) -> str:
    """The text of an MCP tool's result."""
    parts = [get_str(part, "text") for part in get_list(result, "content")]
    return "\n".join(part for part in parts if part)


def tool_name(call: dict[str, Any]) -> str:
    """An MCP tool with its server."""
    return ".".join(part for part in (get_str(call, "server"), get_str(call, "tool")) if part)


def arguments(call: dict[str, Any]) -> dict[str, Any] | None:
    found = call.get("arguments")
    return found if isinstance(found, dict) else None


def checklist(steps: list[Any]) -> str:
    """The steps of a plan, one a line."""
    lines = []
    for step in steps:
        if isinstance(step, dict):
            done = step.get("completed") is True or step.get("status") == "completed"
            lines.append(f"[{'x' if done else ' '}] {get_str(step, 'text', 'step') or ''}")
    return "\n".join(lines)
