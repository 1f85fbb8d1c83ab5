"""Too few resources, and a suspended ralph."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from loop.conftest import Ran
from processes import eventually, marked

if TYPE_CHECKING:
    from pathlib import Path


def begin(repo: Path, agent: str, *flags: str, **options: Any) -> subprocess.Popen[str]:
    """A run whose agent has been started."""
    command = [sys.executable, "-m", "ralph", "run", "--ui", "plain", *flags, "--agent-cmd", f"touch ready; {agent}"]
    pipe = subprocess.PIPE
    going = subprocess.Popen(command, cwd=repo, stdout=pipe, stderr=pipe, text=True, **options)
    assert eventually((repo / "ready").exists)
    return going


def end(going: subprocess.Popen[str], repo: Path) -> Ran:
    out, err = going.communicate(timeout=60)
    return Ran(subprocess.CompletedProcess([], going.returncode, out, err), repo)


def test_too_many_open_files_end_the_run_with_a_reason(repo: Path, mark: str) -> None:
    going = begin(repo, "echo x; sleep 1", "3")
    used = len(os.listdir(f"/proc/{going.pid}/fd"))
    resource.prlimit(going.pid, resource.RLIMIT_NOFILE, (used - 3, used - 3))
    ran = end(going, repo)
    assert (ran.code, ran.end["end"]) == (1, "failed")
    assert "Too many open files" in ran.end["reason"]
    assert "bug" not in ran.err
    assert marked(mark) == {}


@pytest.mark.endurance
def test_running_out_of_memory_ends_the_run_with_a_reason(repo: Path, mark: str) -> None:
    agent = "head -c 60000000 /dev/zero | tr '\\0' '\\377'; echo; sleep 600"
    limited = 160_000_000
    going = begin(repo, agent, "1", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limited, limited)))
    ran = end(going, repo)
    assert (ran.code, ran.end["reason"]) == (1, "out of memory")
    assert "bug" not in ran.err
    assert marked(mark) == {}


def test_output_that_comes_while_ralph_is_suspended_counts(repo: Path, mark: str) -> None:
    going = begin(repo, "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.5; done", "1", "--idle-timeout", "1.5")
    going.send_signal(signal.SIGSTOP)
    time.sleep(2.5)
    going.send_signal(signal.SIGCONT)
    assert end(going, repo).outcomes == ["ok"]
