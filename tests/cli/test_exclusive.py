"""One run per directory, unless all of them allow sharing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from going import Going

    Ralph = Callable[..., subprocess.CompletedProcess[str]]
    Start = Callable[..., Going]

WAIT = "echo started; while [ ! -e .git/go ]; do sleep 0.05; done; echo '<promise>COMPLETE</promise>'"
SHARED = "--exclusive=no"


def test_two_runs_side_by_side_are_listed_separately(ralph: Ralph, start: Start, repo: Path) -> None:
    first = start("echo started; sleep 600", SHARED)
    second = start(WAIT, SHARED)
    first.says("started")
    second.says("started")
    listed = ralph("runs").stdout.splitlines()
    assert [line.split()[:2] for line in listed] == [[first.run_id, "running"], [second.run_id, "running"]]
    assert "still running" in ralph("show", first.run_id).stderr
    first.kill()
    assert [line.split()[1] for line in ralph("runs").stdout.splitlines()] == ["died", "running"]
    assert "cut short" in ralph("tail", "-f", first.run_id, timeout=20).stderr
    (repo / ".git" / "go").touch()
    assert second.ended()[0] == 0


@pytest.mark.parametrize(("holding", "coming"), [((), (SHARED,)), ((SHARED,), ()), ((), ())])
def test_a_second_run_is_refused_unless_both_share(
    ralph: Ralph, start: Start, holding: list[str], coming: list[str]
) -> None:
    first = start("echo started; sleep 600", *holding)
    refused = ralph("run", "1", "--agent-cmd", "cat", *coming)
    assert refused.returncode == 64
    assert f"run {first.run_id}, process {first.process.pid}" in refused.stderr
    assert "--exclusive=no" in refused.stderr


@pytest.mark.parametrize("how", ["file", "variable"])
def test_a_file_or_a_variable_can_allow_sharing(ralph: Ralph, start: Start, repo: Path, how: str) -> None:
    start("echo started; sleep 600", SHARED)
    env = {}
    if how == "file":
        (repo / "ralph.yml").write_text("exclusive: no\n")
    else:
        env = {"RALPH_EXCLUSIVE": "no"}
    assert ralph("run", "1", "--agent-cmd", "cat", env=env).returncode == 2


def test_the_lock_of_a_dead_process_is_released_and_reported_once(ralph: Ralph, start: Start) -> None:
    dead = start("echo started; sleep 600")
    dead.says("started")
    dead.process.kill()
    dead.process.wait()
    said = f"run {dead.run_id}, process {dead.process.pid}, died without a summary"
    next_one = ralph("run", "1", "--agent-cmd", "cat")
    assert next_one.returncode == 2
    assert said in next_one.stdout
    assert "its lock was released" in next_one.stdout
    assert "died without a summary" not in ralph("run", "1", "--agent-cmd", "cat").stdout


def test_doctor_lists_runs_that_share_the_directory(ralph: Ralph, start: Start) -> None:
    first = start("echo started; sleep 600", SHARED)
    assert first.run_id in ralph("doctor").stdout
