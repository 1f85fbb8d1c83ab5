"""The transcript adapters by name: `plain`, `rtf1`, and one for each agent that has an `adapter.py`."""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ralph.errors import UsageError, nearest

if TYPE_CHECKING:
    from ralph.transcripts.base import TranscriptAdapter

AUTO = "auto"
#: Other names for an agent and its output.
_ALIASES = {
    "claude-code": "claude",
    "cursor-agent": "cursor",
    "kilo": "opencode",
    "kimi-cli": "kimi",
    "kimi-code": "kimi",
    "kiro-cli": "kiro",
    "qwen-code": "qwen",
}
#: Formats that do not belong to an agent.
_SHARED = ("plain", "rtf1")
_HERE = Path(__file__).parent


@cache
def names() -> tuple[str, ...]:
    """The names that `--transcript` accepts besides `auto`."""
    return tuple(sorted((*_SHARED, *(path.parent.name for path in _HERE.glob("*/adapter.py")))))


def canonical(name: str) -> str:
    """Return the adapter's own name. Raises UsageError if there is no such adapter."""
    known = _ALIASES.get(name, name)
    if known not in names():
        raise UsageError(f"there is no transcript adapter '{name}'{nearest(name, names())}; use {', '.join(names())}")
    return known


def create(name: str, prompt: str | None = None) -> TranscriptAdapter:
    """Return a new adapter. Adapters are stateful, so each iteration needs its own.

    Some adapters use the prompt to recognise its echo in the output.
    """
    known = canonical(name)
    home = f"ralph.transcripts.{known}" if known in _SHARED else f"ralph.agents.{known}.adapter"
    adapter: TranscriptAdapter = importlib.import_module(home).ADAPTER(prompt)
    return adapter


def select(requested: str | None, spec_transcript: str | None) -> tuple[str, str]:
    """Return the adapter for a run and the reason: the requested one, the one in the agent's spec, or plain."""
    if requested and requested != AUTO:
        return canonical(requested), "asked for"
    if spec_transcript:
        return spec_transcript, "what this agent writes"
    return "plain", "nothing is known about this agent's output"
