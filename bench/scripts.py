"""(g) Agent scripts: the cost of hosting one, compared with running it directly, and the speed of its output."""

from __future__ import annotations

import shlex
import shutil
import statistics
import subprocess
import time
from typing import TYPE_CHECKING

from bench import material
from bench.measure import LIMIT_REACHED, MB, environment, ralph, ratio, run_timed, workspace
from bench.table import Row

if TYPE_CHECKING:
    from pathlib import Path

_EXTRA_MS = 100.0
_FACTOR = 1.25

#: As people write them, with one jq per line in the filter. The response is one line, found without jq.
_SCRIPT = """
AGENT_CLI=cat
agent_invoke() { cat "OUTPUT"; }
agent_extract_response() { tail -n 1 "$1"; }
agent_format_display() { while IFS= read -r line; do echo "$line" | jq -r .text; done; }
"""
_BARE = """
set -uo pipefail
source agents/bench.sh
agent_invoke PROMPT.md | tee last_agent_output | agent_format_display >/dev/null
agent_extract_response last_agent_output >/dev/null
"""


def measure(*, quick: bool) -> list[Row]:
    with workspace() as root:
        return [*_overhead(root, 30 if quick else 100), _throughput(root, 10 * MB if quick else 50 * MB)]


def _overhead(root: Path, count: int) -> list[Row]:
    """A short agent whose filter passes each line on, so that jq's time is in neither figure.

    It never prints the same text twice, or ralph would call it stuck.
    """
    own = 'agent_invoke() { echo "hello $EPOCHREALTIME"; }\nagent_format_display() { cat; }\n'
    _script(root, root / "unused", own)
    bare = _bare(root, count)
    ours = run_timed(
        ralph("run", str(count), "--agent-script", "agents/bench.sh", "--stuck-after", "0", "--ui", "plain"),
        root / "repo",
        env=environment(root),
        stdout=root / "screen",
        expect=LIMIT_REACHED,
    )
    bare = (bare + _bare(root, count)) / 2
    each, alone = ours / count * 1000, bare / count * 1000
    return [
        Row(
            "g",
            f"{count} iterations of an agent script, over the bare shell, each",
            f"+ {each - alone:.1f} ms",
            f"≤ {_EXTRA_MS:.0f} ms",
            each - alone <= _EXTRA_MS,
            f"{each:.1f} ms to {alone:.1f} ms; ralph's own start and end included",
        )
    ]


def _throughput(root: Path, size: int) -> Row:
    """The same bytes from a script with one jq per line in its filter, and from the program that it runs."""
    rtf1 = root / "output.rtf1"
    material.write(rtf1, root / "output.jsonl", size)
    _script(root, rtf1)
    hosted: list[float] = []
    direct: list[float] = []
    for _ in range(3):
        hosted.append(_run(root, rtf1, "--agent-script", "agents/bench.sh"))
        direct.append(_run(root, rtf1, "--agent-cmd", f"cat {shlex.quote(str(rtf1))}"))
    figure = ratio(hosted, direct)
    note = f"{size / MB / statistics.median(hosted):.0f} MB/s, median of 3"
    what = f"{size // MB} MB from an agent script with --transcript, against the same without one"
    return Row("g", what, f"{figure:.2f} ×", f"≤ {_FACTOR} ×", figure <= _FACTOR, note)


def _run(root: Path, expected: Path, *how: str) -> float:
    repo = root / "repo"
    shutil.rmtree(repo / ".ralph", ignore_errors=True)
    seconds = run_timed(
        ralph("run", "1", *how, "--transcript", "rtf1", "--ui", "plain"),
        repo,
        env=environment(root),
        stdout=root / "screen",
        expect=LIMIT_REACHED,
    )
    raw = repo / ".ralph" / "latest" / "iterations" / "0001" / "stdout.raw"
    if raw.stat().st_size != expected.stat().st_size:
        raise RuntimeError("not everything was journaled")
    return seconds


def _script(root: Path, output: Path, own: str = "") -> None:
    path = root / "repo" / "agents" / "bench.sh"
    path.parent.mkdir(exist_ok=True)
    path.write_text(_SCRIPT.replace("OUTPUT", str(output)) + own)


def _bare(root: Path, count: int) -> float:
    """Does what the convention's own loop does in an iteration."""
    command = ["bash", "-c", _BARE]
    before = time.perf_counter()
    for _ in range(count):
        subprocess.run(command, cwd=root / "repo", env=environment(root), stdin=subprocess.DEVNULL, check=True)
    return time.perf_counter() - before
