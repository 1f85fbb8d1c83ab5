"""Agent scripts for tests, and helpers that read what a run left in its journal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

DONE = "<promise>COMPLETE</promise>"
REPLAN = "<promise>REPLAN</promise>"

#: Lines that begin with `say:` are the agent's response.
PLAIN = """
AGENT_CLI=cat
agent_invoke() { printf 'tool: looking\\nsay: %s\\n' "working"; }
agent_extract_response() { sed -n 's/^say: //p' "$1"; }
agent_format_display() { while IFS= read -r line; do echo "seen $line"; done; }
"""


def write(root: Path, body: str = "", name: str = "fake", config: str | None = 'AGENT="fake"\n') -> Path:
    """Writes agents/NAME.sh, a complete script. `body` may redefine its functions."""
    path = root / "agents" / f"{name}.sh"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PLAIN + body)
    if config is not None:
        (root / "config").write_text(config)
    return path


def says(*lines: str) -> str:
    """An agent that prints these lines."""
    quoted = " ".join("'" + line.replace("'", "'\\''") + "'" for line in lines)
    return f"agent_invoke() {{ printf '%s\\n' {quoted}; }}\n"


def iteration(root: Path, number: int = 1) -> Path:
    return root / ".ralph" / "latest" / "iterations" / f"{number:04d}"


def events(root: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (root / ".ralph" / "latest" / "events.jsonl").read_text().splitlines()]


def metas(root: Path, kind: str) -> list[dict[str, Any]]:
    return [e["meta"] for e in events(root) if e["type"] == "meta" and e["meta"]["kind"] == kind]


def texts(root: Path, tag: str) -> list[str]:
    return [e["text"] for e in events(root) if e["type"] == "text" and e["tag"] == tag]


def outcomes(root: Path) -> list[str]:
    return [m["outcome"] for m in metas(root, "iteration_end")]
