"""(b) The cost of an iteration when the agent does nothing, compared with starting the command without ralph."""

from __future__ import annotations

import shutil
import subprocess
import time
from typing import TYPE_CHECKING

from bench.measure import LIMIT_REACHED, custom_agent, environment, ralph, run_timed, workspace
from bench.table import Row

if TYPE_CHECKING:
    from pathlib import Path

_FACTOR = 1.5
_EXTRA_MS = 20.0


def measure(*, quick: bool) -> list[Row]:
    count = 50 if quick else 200
    with workspace() as root:
        program = shutil.which("true") or "/bin/true"
        custom_agent(root / "repo", program)
        bare = _bare(root, program, count)
        ours = run_timed(
            ralph("run", str(count), "--max-failures", "0", "--stuck-after", "0", "--ui", "plain"),
            root / "repo",
            env=environment(root),
            stdout=root / "screen",
            expect=LIMIT_REACHED,
        )
        bare = (bare + _bare(root, program, count)) / 2  # before and after: the load of the machine may have changed
    each, spawn = ours / count * 1000, bare / count * 1000
    aim = _FACTOR * spawn + _EXTRA_MS
    what = f"{count} iterations of `true`, in a git repository,"
    return [
        Row(
            "b",
            f"{what} each",
            f"{each:.1f} ms",
            f"≤ {_FACTOR} × + {_EXTRA_MS:.0f} ms",
            each <= aim,
            f"a bare spawn took {spawn:.1f} ms, so at most {aim:.1f} ms; ralph's own start and end included",
        ),
        Row("b", f"{what} over the bare spawn", f"+ {each - spawn:.1f} ms", note=f"{each / spawn:.1f} × a bare spawn"),
    ]


def _bare(root: Path, program: str, count: int) -> float:
    """Runs the same command with the same prompt on its stdin."""
    prompt = (root / "repo" / "PROMPT.md").read_bytes()
    env = environment(root)
    before = time.perf_counter()
    for _ in range(count):
        subprocess.run([program], cwd=root / "repo", env=env, input=prompt, capture_output=True, check=True)
    return time.perf_counter() - before
