"""(c) Start-up time: `--version` and `run --dry-run`, compared with the same interpreter doing nothing."""

from __future__ import annotations

import shutil
import statistics
import sys

from bench.measure import custom_agent, environment, ralph, ratio, run_timed, workspace
from bench.table import Row


def measure(*, quick: bool) -> list[Row]:
    rounds = 15 if quick else 60
    with workspace() as root:
        plain = root / "plain"
        plain.mkdir()
        custom_agent(root / "repo", shutil.which("true") or "/bin/true")
        dry = ralph("run", "--dry-run", "-p", "Fix the tests")
        commands = {
            "python": ([sys.executable, "-c", "pass"], plain),
            "version": (ralph("--version"), plain),
            "flags": ([*dry, "--agent-cmd", "true"], plain),
            "file": (dry, root / "repo"),
        }
        taken: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(rounds + 1):
            for name, (argv, cwd) in commands.items():
                taken[name].append(run_timed(argv, cwd, env=environment(root)))
    taken = {name: values[1:] for name, values in taken.items()}  # the first round fills the caches
    nothing = statistics.median(taken["python"]) * 1000
    rows = []
    for name, what, aim in (
        ("version", "ralph --version", 2.5),
        ("flags", "ralph run --dry-run, by flags alone,", 6.0),
        ("file", "ralph run --dry-run, with a ralph.yml,", 6.0),
    ):
        figure = ratio(taken[name], taken["python"])
        took = statistics.median(taken[name]) * 1000
        note = f"{took:.0f} ms to {nothing:.0f} ms, median of {rounds}"
        rows.append(Row("c", f"{what} against python -c pass", f"{figure:.2f} ×", f"≤ {aim:g} ×", figure <= aim, note))
    return rows
