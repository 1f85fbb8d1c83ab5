"""Timing processes, and temporary folders to run them in."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MB = 1_000_000
#: In seconds. Nothing here takes that long, so a longer run hangs.
LIMIT = 900.0
#: The exit code of a run that used all its iterations.
LIMIT_REACHED = 2


def ralph(*arguments: str) -> list[str]:
    """The installed command beside this interpreter, as a user would run it."""
    return [str(Path(sys.executable).with_name("ralph")), *arguments]


def environment(home: Path) -> dict[str, str]:
    """The environment without the user's own settings.

    This includes Python's: with PYTHONDONTWRITEBYTECODE, every start would compile ralph again.
    """
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RALPH_", "GIT_", "XDG_", "AGENT_", "PYTHON"))}
    own = {"HOME": str(home), "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    # The benchmarks' ralph.yml contains commands, and b measures an agent that does nothing over and over.
    never = {f"RALPH_{name}": "0" for name in ("STUCK_AFTER", "SAME_ERROR_AFTER", "SAME_ANSWER_AFTER")}
    return kept | own | never | {"RALPH_TRUST": "1"}


@contextlib.contextmanager
def workspace() -> Iterator[Path]:
    """A temporary folder with a small git repository `repo`. Everything is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="ralph-bench-") as name:
        root = Path(name)
        repo = root / "repo"
        repo.mkdir()
        for number in range(20):
            (repo / f"file{number}.txt").write_text(f"{number}\n" * 50)
        (repo / "PROMPT.md").write_text("Do the next thing on the list.\n")
        identity = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"]
        for arguments in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "start"]):
            subprocess.run(["git", *arguments], cwd=repo, env=environment(root), check=True)
        yield root


def custom_agent(repo: Path, program: str, arguments: Sequence[str] = ()) -> None:
    """Writes a ralph.yml with this program as the agent, started without a shell."""
    quoted = json.dumps(program), json.dumps(list(arguments))  # JSON is YAML, and it quotes any path
    (repo / "ralph.yml").write_text("agent: custom\nprompt_mode: stdin\ncommand: {}\nargs: {}\n".format(*quoted))


def run_timed(
    argv: Sequence[str],
    cwd: Path,
    *,
    env: Mapping[str, str],
    stdin: Path | None = None,
    stdout: Path | None = None,
    expect: int = 0,
) -> float:
    """Runs a process and returns its wall time in seconds. An unexpected exit code is an error."""
    with open(stdin or os.devnull, "rb") as source, open(stdout or os.devnull, "wb") as target:
        before = time.perf_counter()
        done = subprocess.run(
            argv, cwd=cwd, env=env, stdin=source, stdout=target, stderr=subprocess.PIPE, timeout=LIMIT, check=False
        )
        seconds = time.perf_counter() - before
    if done.returncode != expect:
        raise RuntimeError(f"{argv[0]} ended with {done.returncode}, not {expect}: {done.stderr.decode()[-500:]}")
    return seconds


def ratio(values: Sequence[float], base: Sequence[float]) -> float:
    """The ratio of the medians. The runs alternate, so a slow moment of the machine affects both."""
    return statistics.median(values) / statistics.median(base)


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
