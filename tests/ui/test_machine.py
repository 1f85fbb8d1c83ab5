"""`--ui json`: events on stdout and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Ralph = Callable[..., subprocess.CompletedProcess[str]]


def test_stdout_is_ndjson_and_nothing_else(ralph: Ralph, repo: Path) -> None:
    (repo / "ralph.yml").write_text("agnt: x\n")
    command = r"printf '\377\0 odd \033[31m\n{\"not\": \"ours\"}\n'; echo err >&2"
    result = ralph("run", "2", "--ui", "json", "--agent-cmd", command)
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert {e["type"] for e in events} <= {"text", "tool_start", "tool_output", "tool_end", "usage", "meta"}
    assert [e["seq"] for e in events] == list(range(1, len(events) + 1))
    assert events[-1]["meta"]["kind"] == "run_end"
    assert events[-1]["meta"]["exit_code"] == result.returncode == 2
    assert result.stdout.encode() == (repo / ".ralph" / "latest" / "events.jsonl").read_bytes()


def test_usage_errors_do_not_go_to_stdout(ralph: Ralph) -> None:
    result = ralph("run", "--ui", "json", "--agent", "nobody")
    assert (result.returncode, result.stdout) == (64, "")


def test_a_closed_pipe_ends_the_run_cleanly(ralph: Ralph, repo: Path) -> None:
    command = f"{sys.executable} -m ralph run --ui json --agent-cmd 'seq 1 30000; sleep 60' | head -1"
    done = subprocess.run(["bash", "-c", command], cwd=repo, capture_output=True, text=True, timeout=30, check=False)
    assert len(done.stdout.splitlines()) == 1
    assert "Traceback" not in done.stderr
    (run,) = [json.loads(line) for line in ralph("runs", "--json").stdout.splitlines()]
    assert (run["end"], run["exit_code"]) == ("terminated", 143)


def test_output_to_a_full_disk_ends_the_run_cleanly(ralph: Ralph, repo: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ralph", "run", "--agent-cmd", "echo hi; sleep 60"],
            cwd=repo, stdout=full, stderr=subprocess.PIPE, text=True, timeout=30, check=False,
        )  # fmt: skip
    assert done.returncode == 143
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr
    assert "terminated" in ralph("runs").stdout
