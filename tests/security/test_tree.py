"""What an agent changes is seen, whatever it does to hide it, and looking at it starts nothing and never hangs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from .support import DONE, harmless

if TYPE_CHECKING:
    from pathlib import Path

    from .support import Ralph

SAY = f"echo '{DONE}'"

HIDDEN = {
    "assume-unchanged": "git update-index --assume-unchanged README.md; echo x >> README.md",
    "skip-worktree": "git update-index --skip-worktree README.md; echo x >> README.md",
    "exclude": "mkdir -p .git/info; echo '*' > .git/info/exclude; echo x > new",
    "excludesFile": "echo '*' > .git/mine; git config core.excludesFile .git/mine; echo x > new",
    "gitignore": "mkdir sub; echo '*' > sub/.gitignore; echo x > sub/new",
    "replace": "o=$(git rev-parse HEAD); echo x > new; git add .; git commit -qm n; git replace $o HEAD",
    "new .git": "echo x > new; rm -rf .git; git init -q; git add .; git commit -qm n",
    "no .git": "echo x > new; rm -rf .git",
    "pruned": "echo x > new; git add .; git commit -q --amend -m n; git reflog expire --expire=now --all; "
    "git gc -q --prune=now",
    "journal": "mkdir -p .ralph/runs.d; echo x > .ralph/latest.sh",
    "last output": "echo x > last_agent_output.sh",
    "hook": "mkdir -p .git/hooks; echo x > .git/hooks/pre-commit",
    "nested": "git init -q nested; echo x > nested/new",
}


def end_of(repo: Path) -> dict[str, Any]:
    lines = (repo / ".ralph" / "latest" / "events.jsonl").read_bytes().splitlines()
    meta: dict[str, Any] = json.loads(lines[-1])["meta"]
    assert meta["kind"] == "run_end"
    return meta


@pytest.mark.parametrize("how", HIDDEN)
def test_a_hidden_change_outside_the_allowed_paths_is_seen(ralph: Ralph, repo: Path, how: str) -> None:
    done = ralph("run", "1", "--allowed-paths", "src", "--agent-cmd", f"{HIDDEN[how]}; {SAY}")
    harmless(done)
    assert done.returncode == 2, done
    assert "outside the allowed paths" in done.stdout
    end = end_of(repo)
    assert end["files"], end


@pytest.mark.parametrize(("how", "commits"), [("new .git", None), ("pruned", None), ("replace", 1)])
def test_commits_that_cannot_be_counted_are_unknown(ralph: Ralph, repo: Path, how: str, commits: int | None) -> None:
    done = ralph("run", "1", "--agent-cmd", f"{HIDDEN[how]}; {SAY}")
    assert done.returncode == 0, done
    assert end_of(repo)["commits"] == commits
    assert ("an unknown number of commits" in done.stdout) is (commits is None)


def test_what_was_ignored_before_the_run_may_change(ralph: Ralph, repo: Path) -> None:
    (repo / ".gitignore").write_text("build/\n")
    done = ralph("run", "1", "--allowed-paths", "src", "--agent-cmd", f"mkdir -p build src; touch build/x src/y; {SAY}")
    assert done.returncode == 0, done
    assert end_of(repo)["files"] == ["src/y"]


def test_a_resumed_run_compares_with_the_tree_and_the_rules_before_the_run(ralph: Ralph, repo: Path) -> None:
    hide = "echo x > first; echo first > .gitignore; git add .gitignore; git commit -qm hide"
    assert ralph("run", "1", "--agent-cmd", hide).returncode == 2
    done = ralph("run", "2", "--resume", "--agent-cmd", "echo x > second")
    assert done.returncode == 2, done
    assert end_of(repo)["files"] == [".gitignore", "first", "second"]
    assert end_of(repo)["commits"] == 1


@pytest.mark.parametrize("name", [".gitignore", ".git/config", ".git/HEAD", ".git/index", "sub/.git/HEAD"])
def test_a_pipe_does_not_hang_it(ralph: Ralph, repo: Path, name: str) -> None:
    make = f"mkdir -p sub/.git; rm -f {name}; mkfifo {name}; echo x > new"
    began = time.monotonic()
    done = ralph("run", "5", "--confirmations", "3", "--agent-cmd", f"[ -e new ] || {{ {make}; }}; {SAY}", timeout=100)
    harmless(done)
    assert time.monotonic() - began < 45  # git is asked once, and for ten seconds
    assert done.returncode == 0, done
    assert "new" in end_of(repo)["files"]


def test_sparse_files_cost_no_time(ralph: Ralph, repo: Path) -> None:
    for number in range(24):
        with (repo / f"sparse{number}").open("wb") as file:
            file.truncate(1 << 40)
    done = ralph("run", "1", "--agent-cmd", f"truncate -s +1 sparse7; {SAY}", timeout=30)
    assert done.returncode == 0, done
    assert end_of(repo)["files"] == ["sparse7"]


@pytest.mark.endurance
def test_ctrl_c_ends_it_while_it_looks_at_many_files(repo: Path) -> None:
    """Files that take long to read: many of the size that is just read."""
    for number in range(700):
        with (repo / f"large{number}").open("wb") as file:
            file.truncate(32 << 20)
    command = [sys.executable, "-m", "ralph", "run", "1", "--agent-cmd", "true"]
    process = subprocess.Popen(command, cwd=repo, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while not list((repo / ".ralph" / "runs").glob("*/run.json")) and process.poll() is None:
        time.sleep(0.05)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert time.monotonic() - began < 15
    assert "unknown whether files changed" in output, output


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a repository to another user")
def test_in_a_repository_of_another_user_files_are_compared(ralph: Ralph, repo: Path) -> None:
    for path in (repo, repo / ".git"):
        os.chown(path, 12345, 12345)
    done = ralph("run", "1", "--allowed-paths", "src", "--agent-cmd", f"echo HELLO > README.md; {SAY}")
    assert "outside the allowed paths: README.md" in done.stdout, done
