"""(a) Large output that is read, judged, shown and journaled, compared with `cat` and `jq` on the same bytes."""

from __future__ import annotations

import shutil
import statistics
from typing import TYPE_CHECKING

from bench import material
from bench.measure import LIMIT_REACHED, MB, custom_agent, environment, ralph, ratio, run_timed, workspace
from bench.table import Row

if TYPE_CHECKING:
    from pathlib import Path

_AIM = 1.5


def measure(*, quick: bool) -> list[Row]:
    size, rounds = (10 * MB, 3) if quick else (50 * MB, 5)
    with workspace() as root:
        rtf1, bare = root / "output.rtf1", root / "output.jsonl"
        lines = material.write(rtf1, bare, size)
        cat, jq = shutil.which("cat") or "/bin/cat", shutil.which("jq")
        custom_agent(root / "repo", cat, [str(rtf1)])
        ours: list[float] = []
        copied: list[float] = []
        parsed: list[float] = []
        for _ in range(rounds):
            ours.append(_ralph(root, rtf1))
            copied.append(run_timed([cat, str(rtf1)], root, env=environment(root), stdout=root / "copy"))
            if jq:
                parsed.append(run_timed([jq, "-c", ".", str(bare)], root, env=environment(root), stdout=root / "copy"))
    what = f"{size // MB} MB of RTF1, all journaled, against"
    wall = statistics.median(ours)
    note = f"{lines:,} lines, {wall:.2f} s, {size / MB / wall:.0f} MB/s, median of {rounds}"
    rows = [_against_jq(what, ours, parsed) if jq else Row("a", f"{what} jq -c .", "jq is not installed")]
    return [*rows, Row("a", f"{what} cat", f"{ratio(ours, copied):.1f} ×", note=note)]


def _against_jq(what: str, ours: list[float], parsed: list[float]) -> Row:
    figure = ratio(ours, parsed)
    note = f"jq took {statistics.median(parsed):.2f} s"
    return Row("a", f"{what} jq -c .", f"{figure:.2f} ×", f"≤ {_AIM} ×", figure <= _AIM, note)


def _ralph(root: Path, rtf1: Path) -> float:
    """Runs one iteration with its screen in a file. The figure counts only if the journal has all bytes."""
    repo = root / "repo"
    seconds = run_timed(
        ralph("run", "1", "--transcript", "rtf1", "--ui", "plain"),
        repo,
        env=environment(root),
        stdout=root / "screen",
        expect=LIMIT_REACHED,
    )
    raw = repo / ".ralph" / "latest" / "iterations" / "0001" / "stdout.raw"
    if raw.stat().st_size != rtf1.stat().st_size:
        raise RuntimeError("not everything was journaled")
    shutil.rmtree(repo / ".ralph")
    return seconds
