"""Which transcript adapters there are: `plain`, `rtf1`, and one for each agent with an `adapter.py` in its folder."""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ralph.errors import UsageError, nearest

if TYPE_CHECKING:
    from ralph.transcripts.base import TranscriptAdapter

AUTO = "auto"
#: Other names by which people call an agent, and so its output.
_ALIASES = {
    "claude-code": "claude",
    "cursor-agent": "cursor",
    "kilo": "opencode",
    "kimi-cli": "kimi",
    "kimi-code": "kimi",
    "kiro-cli": "kiro",
    "qwen-code": "qwen",
}
#: Formats that belong to no agent.
_SHARED = ("plain", "rtf1")
_HERE = Path(__file__).parent


@cache
def names() -> tuple[str, ...]:
    """The names that `--transcript` takes, besides `auto`."""
    return tuple(sorted((*_SHARED, *(path.parent.name for path in _HERE.glob("*/adapter.py")))))


def canonical(name: str) -> str:
    """The adapter's own name; a UsageError if no adapter has it."""
    known = _ALIASES.get(name, name)
    if known not in names():
        raise UsageError(
            f"there is no transcript adapter '{name}'{nearest(name, names())}; there are: {', '.join(names())}"
        )
    return known


def create(name: str, prompt: str | None = None) -> TranscriptAdapter:
    """A fresh adapter; they are stateful, so one is made for each iteration.

    `prompt` is what the agent was given, for adapters that recognise its echo.
    """
    known = canonical(name)
    home = f"ralph.transcripts.{known}" if known in _SHARED else f"ralph.agents.{known}.adapter"
    adapter: TranscriptAdapter = importlib.import_module(home).ADAPTER(prompt)
    return adapter


def select(requested: str | None, spec_transcript: str | None) -> tuple[str, str]:
    """The adapter for a run, and why: what was asked for, else what the agent is known to write, else plain."""
    if requested and requested != AUTO:
        return canonical(requested), "asked for"
    if spec_transcript:
        return spec_transcript, "what this agent writes"
    return "plain", "nothing is known about this agent's output"
