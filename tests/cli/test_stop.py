"""`ralph stop` and signals: real runs, ended from another process."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import TYPE_CHECKING

import pytest

from processes import alive, eventually, read_pid

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from going import Going

    Ralph = Callable[..., subprocess.CompletedProcess[str]]
    Start = Callable[..., Going]

MARK = "<promise>COMPLETE</promise>"
#: waits until the file exists
GATE = "while [ ! -e .git/go ]; do sleep 0.05; done"
#: reports the signal and keeps running
STUBBORN = "trap 'echo heard' TERM; echo $$ > .git/pid; echo started; while :; do sleep 0.05; done"


def test_the_current_iteration_finishes_then_the_run_ends(ralph: Ralph, start: Start, repo: Path) -> None:
    run = start(f"echo started; {GATE}; echo finished")
    run.says("started")
    asked = ralph("stop", "--no-wait")
    assert (asked.returncode, asked.stdout) == (0, f"run {run.run_id} will stop after iteration 1\n")
    run.reaches("notice")
    (repo / ".git" / "go").touch()
    code, out = run.ended()
    assert (code, run.end["end"], run.outcomes) == (130, "stopped", ["ok"])
    assert "finished" in out
    assert "Stopped (exit code 130)" in out


def test_stop_waits_until_the_run_has_ended_and_reports_it(ralph: Ralph, start: Start) -> None:
    run = start("echo started; sleep 2")
    run.says("started")
    done = ralph("stop")
    assert done.returncode == 0
    assert f"run {run.run_id} has ended: stopped after 1 iteration (exit code 130)" in done.stdout
    assert run.end["end"] == "stopped"


def test_the_request_remains_when_the_wait_is_over(ralph: Ralph, start: Start, repo: Path) -> None:
    run = start(f"echo started; {GATE}")
    run.says("started")
    done = ralph("stop", "--wait", "0.2")
    assert done.returncode == 1
    assert "has not stopped" in done.stderr
    (repo / ".git" / "go").touch()
    assert run.ended()[0] == 130


def test_a_run_that_finishes_in_this_iteration_is_complete(ralph: Ralph, start: Start, repo: Path) -> None:
    run = start(f"echo started; {GATE}; echo '{MARK}'")
    run.says("started")
    ralph("stop", "--no-wait")
    (repo / ".git" / "go").touch()
    assert (run.ended()[0], run.end["end"]) == (0, "complete")


def test_now_ends_the_agent_with_its_grace_period(ralph: Ralph, start: Start) -> None:
    run = start("trap 'echo goodbye; exit 0' TERM; echo started; while :; do sleep 0.05; done", "--grace", "60")
    run.says("started")
    began = time.monotonic()
    done = ralph("stop", "--now", run.run_id)
    assert time.monotonic() - began < 20
    assert (done.returncode, run.ended()[0], run.end["end"]) == (0, 130, "stopped")
    assert any(e.get("text") == "goodbye" for e in run.events)
    assert run.outcomes == ["interrupted"]


def test_stop_now_given_twice_kills_the_agent(ralph: Ralph, start: Start, repo: Path) -> None:
    run = start(STUBBORN, "--grace", "300")
    run.says("started")
    agent = read_pid(repo / ".git" / "pid")
    ralph("stop", "--now", "--no-wait")
    run.says("heard")
    assert alive(agent)
    began = time.monotonic()
    assert "at once" in ralph("stop", "--now", "--no-wait").stdout
    assert (run.ended()[0], run.end["end"]) == (130, "stopped")
    assert time.monotonic() - began < 20
    assert not alive(agent)


def test_now_after_a_first_request_does_not_wait_for_the_iteration(ralph: Ralph, start: Start) -> None:
    run = start("echo started; sleep 600")
    run.says("started")
    ralph("stop", "--no-wait")
    assert ralph("stop", "--now").returncode == 0
    assert (run.ended()[0], run.outcomes) == (130, ["interrupted"])


def test_between_iterations_a_stop_takes_effect_at_once(ralph: Ralph, start: Start) -> None:
    run = start("echo x", "--sleep", "600")
    run.reaches("iteration_end")
    assert ralph("stop").returncode == 0
    assert (run.ended()[0], run.outcomes) == (130, ["ok"])


def test_a_stop_also_ends_checks_before_the_run(ralph: Ralph, start: Start, repo: Path) -> None:
    run = start("echo x", "--verify", "touch .git/checking; sleep 600")
    assert eventually((repo / ".git" / "checking").exists)
    assert ralph("stop").returncode == 0
    assert (run.ended()[0], run.outcomes) == (130, [])


def test_a_stop_takes_effect_before_the_next_tick(ralph: Ralph, start: Start) -> None:
    """The plain screen ticks once a second; the bell wakes it up."""
    run = start("echo started; exec sleep 600")
    run.says("started")
    (run.root / "control" / "stop").write_text("now")
    began = time.monotonic()
    with (run.root / "control" / "bell").open("wb", buffering=0) as bell:
        bell.write(b"!")
    run.reaches("run_end")
    assert time.monotonic() - began < 0.9


def test_a_stop_works_without_the_bell(ralph: Ralph, start: Start) -> None:
    run = start("echo started; sleep 600")
    run.says("started")
    (run.root / "control" / "bell").unlink()
    assert ralph("stop", "--now").returncode == 0
    assert run.ended()[0] == 130


def test_control_files_are_private(ralph: Ralph, start: Start) -> None:
    run = start("echo started; sleep 600")
    run.says("started")
    control = run.root / "control"
    ralph("pause")
    ralph("steer", "words")
    found = {path.name: path.stat().st_mode & 0o777 for path in control.rglob("*")}
    assert {name for name in found if not name.endswith(".md")} == {"pause", "notes", "bell"}
    assert {mode for name, mode in found.items() if name != "notes"} == {0o600}
    assert control.stat().st_mode & 0o777 == 0o700


def test_stop_in_a_directory_without_runs_is_an_error(ralph: Ralph) -> None:
    nothing = ralph("stop")
    assert nothing.returncode == 64
    assert "no runs" in nothing.stderr


@pytest.mark.parametrize("command", [["stop"], ["pause"], ["resume"], ["steer", "words"]])
def test_a_run_that_has_ended_cannot_be_controlled(ralph: Ralph, start: Start, command: list[str]) -> None:
    run = start(f"echo '{MARK}'")
    run.ended()
    verb, *words = command
    for name in ([], [run.run_id]):
        ended = ralph(verb, *name, *words)
        assert (ended.returncode, ended.stdout) == (64, "")
        assert f"run {run.run_id} has ended (complete: " in ended.stderr


def test_the_error_for_a_stopped_run_shows_how_to_resume_it(ralph: Ralph, start: Start) -> None:
    run = start("echo x", "--sleep", "600")
    run.reaches("iteration_end")
    ralph("stop")
    assert f"`ralph run --resume {run.run_id}`" in ralph("resume").stderr


def test_an_unknown_run_is_an_error(ralph: Ralph, start: Start) -> None:
    start(f"echo '{MARK}'").ended()
    unknown = ralph("stop", "20010101")
    assert unknown.returncode == 64
    assert "there is no run '20010101'" in unknown.stderr


@pytest.mark.parametrize("command", ["stop", "resume"])
def test_the_error_for_a_run_that_died_shows_how_to_resume_it(ralph: Ralph, start: Start, command: str) -> None:
    run = start("echo started; sleep 600")
    run.says("started")
    run.kill()
    for name in ([], [run.run_id]):
        answer = ralph(command, *name)
        assert answer.returncode == 64
        assert f"died; you can resume it with `ralph run --resume {run.run_id}`" in answer.stderr


def test_with_several_runs_one_must_be_named(ralph: Ralph, start: Start) -> None:
    first, second = (start("echo started; sleep 600", "--exclusive=no") for _ in range(2))
    for run in (first, second):
        run.says("started")
    which = ralph("stop", "--now")
    assert which.returncode == 64
    assert first.run_id in which.stderr
    assert second.run_id in which.stderr
    assert ralph("stop", "--now", first.run_id).returncode == 0
    assert first.end["end"] == "stopped"
    assert second.process.poll() is None
    assert ralph("stop", "--now").returncode == 0
    assert second.ended()[0] == 130


def test_the_agents_environment_does_not_name_its_run(start: Start, tmp_path_factory: pytest.TempPathFactory) -> None:
    """An agent that tries `ralph stop` somewhere else must not stop its own loop."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    run = start(f"cd {elsewhere} && {sys.executable} -m ralph stop; echo code=$?", "1")
    assert run.ended()[0] == 2
    assert run.end["end"] == "limit"
    assert any(e.get("text") == "code=64" for e in run.events)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_the_prompt_is_missing_is_not_a_failure(
    start: Start, repo: Path, number: int, code: int
) -> None:
    run = start("echo x", "--sleep", "0.5")
    run.reaches("iteration_end")
    (repo / "PROMPT.md").rename(repo / "gone.md")
    before = len(run.metas("iteration_end"))
    assert eventually(lambda: len(run.metas("iteration_end")) == len(run.metas("iteration_start")))
    time.sleep(0.7)  # now it waits for the prompt to reappear
    os.kill(run.process.pid, number)
    assert run.ended()[0] == code
    assert run.end["iterations"] == len(run.outcomes) >= before
