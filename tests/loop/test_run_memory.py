"""Memory after many iterations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from loop.conftest import Ran


@pytest.mark.endurance
def test_the_memory_of_an_iteration_is_freed(run: Callable[..., Ran], repo: Path) -> None:
    """An adapter keeps tool calls that never end, and its parts refer to each other."""
    folder = repo.parent / f"{repo.name}-outside"
    folder.mkdir()
    calls = [
        {
            "type": "assistant",
            "message": {
                "id": f"m{n}",
                "content": [{"type": "tool_use", "id": f"call-{n}", "name": "Bash", "input": {}}],
            },
        }
        for n in range(6000)
    ]
    (folder / "output").write_text("".join(json.dumps(call) + "\n" for call in calls))
    # The agent's parent is the keeper, and ralph is that one's.
    script = f"""cat {folder}/output
    ralph=$(cut -d' ' -f4 /proc/$PPID/stat)
    grep VmRSS /proc/$ralph/status | tr -dc '0-9\\n' >> {folder}/memory"""
    ran = run(script, "8", "--transcript", "claude", "--max-failures", "0", "--stuck-after", "0", "--ui", "quiet")
    sizes = [int(size) for size in (folder / "memory").read_text().split()]
    assert len(sizes) == len(ran.iterations) == 8
    assert max(sizes[3:]) < sizes[2] * 1.1, sizes
