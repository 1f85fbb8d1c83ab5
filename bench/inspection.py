"""(i) Looking at a repository of 100,000 files, compared with `git status` in it."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import time
from typing import TYPE_CHECKING

from bench.measure import LIMIT_REACHED, custom_agent, environment, ralph, ratio, run_timed, workspace
from bench.table import Row

if TYPE_CHECKING:
    from pathlib import Path

_AIM = 2.0
_STATUS = ["git", "--no-optional-locks", "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all"]


def measure(*, quick: bool) -> list[Row]:
    count, rounds = (10_000, 3) if quick else (100_000, 3)
    few, many = 1, 5
    with workspace() as root:
        repo, env = root / "repo", environment(root)
        custom_agent(repo, shutil.which("true") or "/bin/true")
        _fill(repo, count)
        for arguments in (["add", "."], ["-c", "user.name=b", "-c", "user.email=b@localhost", "commit", "-qm", "many"]):
            subprocess.run(["git", *arguments], cwd=repo, env=env, check=True)
        time.sleep(2.1)  # files that are this new are read again
        status = [run_timed(_STATUS, repo, env=env)]
        first = _run(root, few)
        each: list[float] = []
        start: list[float] = []
        for _ in range(rounds):
            status.append(run_timed(_STATUS, repo, env=env))
            start.append(_run(root, few))
            status.append(run_timed(_STATUS, repo, env=env))
            each.append((_run(root, many) - start[-1]) / (many - few))
    took, base = statistics.median(each), statistics.median(status)
    figure = ratio(each, status)
    what = f"{count:,} files: "
    note = f"{took:.2f} s to {base:.2f} s, median of {rounds}"
    return [
        Row(
            "i",
            f"{what}an iteration of `true` against git status",
            f"{figure:.2f} ×",
            f"≤ {_AIM:g} ×",
            figure <= _AIM,
            note,
        ),
        Row(
            "i",
            f"{what}a run of one iteration",
            f"{ratio(start, status):.1f} ×",
            note="ralph's own start and end included",
        ),
        Row("i", f"{what}the first run, which reads every file", f"{first / base:.1f} ×", note=f"{first:.1f} s, once"),
    ]


def _run(root: Path, iterations: int) -> float:
    command = ralph("run", str(iterations), "--max-failures", "0", "--ui", "plain")
    return run_timed(command, root / "repo", env=environment(root), stdout=root / "screen", expect=LIMIT_REACHED)


def _fill(repo: Path, count: int) -> None:
    """Small files, fifty in a folder."""
    for number in range(count):
        folder = repo / "src" / f"m{number // 1000:03d}" / f"p{number // 50 % 20:02d}"
        if number % 50 == 0:
            folder.mkdir(parents=True, exist_ok=True)
        (folder / f"file{number}.py").write_text(f"# {number}\n" * (20 + number % 50))
