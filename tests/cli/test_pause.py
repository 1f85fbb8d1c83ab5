"""`ralph pause` and `ralph resume` with real runs."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from processes import eventually

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from going import Going

    Ralph = Callable[..., subprocess.CompletedProcess[str]]
    Start = Callable[..., Going]

MARK = "<promise>COMPLETE</promise>"
GATE = "while [ ! -e .git/go ]; do sleep 0.05; done"


def limited(seconds: float) -> str:
    """An agent that is rate-limited in its first iteration."""
    event = {"type": "meta", "meta": {"kind": "rate_limit", "retry_after": seconds}}
    error = {"type": "meta", "meta": {"kind": "error", "message": "limit", "class": "rate_limited"}}
    lines = "; ".join(f"echo '@@RALPH@@ {json.dumps(e)}'" for e in (event, error))
    done = json.dumps({"type": "text", "tag": "AI", "text": MARK})
    return f"if [ $RALPH_ITERATION = 1 ]; then {lines}; exit 1; fi; echo '@@RALPH@@ {done}'"


def states(run: Going) -> list[str]:
    return [pause["state"] for pause in run.metas("pause")]


def test_the_current_iteration_finishes_then_the_run_is_paused_until_resumed(
    ralph: Ralph, start: Start, repo: Path
) -> None:
    run = start(f"echo started; {GATE}; [ $RALPH_ITERATION = 2 ] && echo '{MARK}'; exit 0")
    run.says("started")
    asked = ralph("pause")
    assert (asked.returncode, "will pause after iteration 1" in asked.stdout) == (0, True)
    (repo / ".git" / "go").touch()
    run.reaches("pause")
    assert run.metas("pause")[0]["go_on"] == "ralph resume"
    assert ralph("runs").stdout.split()[1] == "paused"
    assert "already paused" in ralph("pause").stdout
    time.sleep(0.5)
    assert len(run.metas("iteration_start")) == 1
    assert ralph("resume").stdout == f"run {run.run_id} continues\n"
    code, out = run.ended()
    assert (code, run.outcomes, states(run)) == (0, ["ok", "ok"], ["paused", "resumed"])
    assert "paused; to resume, run `ralph resume` in another terminal" in out
    assert "paused)" in run.end["summary"]["Time"]


def test_now_stops_the_agent_and_its_iteration_is_repeated_and_not_counted(ralph: Ralph, start: Start) -> None:
    script = f"echo started; [ $RALPH_ITERATION = 1 ] && exec sleep 600; echo '{MARK}'"
    run = start(script, "1", "--max-failures", "1")
    run.says("started")
    paused = ralph("pause", "--now")
    assert (paused.returncode, paused.stdout) == (0, f"run {run.run_id} is paused; `ralph resume` resumes it\n")
    assert run.metas("iteration_end")[0]["counted"] is False
    assert ralph("resume").returncode == 0
    assert (run.ended()[0], run.outcomes) == (0, ["interrupted", "ok"])


def test_a_pause_does_not_count_as_run_time(start: Start, repo: Path) -> None:
    run = start(f"echo started; {GATE}; [ $RALPH_ITERATION = 2 ] && echo '{MARK}'; exit 0", "--max-runtime", "5")
    run.says("started")
    run.requests.ask_pause(now=False)
    (repo / ".git" / "go").touch()
    run.reaches("pause")
    time.sleep(5.2)
    run.requests.end_pause()
    assert run.ended()[0] == 0
    assert run.end["seconds"] < 5
    assert run.metas("pause")[1]["seconds"] > 5


def test_a_pause_takes_effect_during_a_wait_for_a_limit(ralph: Ralph, start: Start) -> None:
    run = start(limited(4), "--transcript", "rtf1")
    run.reaches("wait")
    assert ralph("pause").returncode == 0
    run.reaches("pause")
    until = run.metas("wait")[0]["until"]
    assert next(e["time"] for e in run.events if e.get("meta", {}).get("kind") == "pause") < until
    run.requests.end_pause()
    assert run.ended()[0] == 0
    begun = [e["time"] for e in run.events if e["type"] == "meta" and e["meta"]["kind"] == "iteration_start"]
    assert begun[1] >= until - 0.1  # ralph still waits for the limit
    assert run.outcomes == ["rate_limited", "ok"]


def test_a_pause_can_be_longer_than_the_wait(start: Start) -> None:
    run = start(limited(2), "--transcript", "rtf1")
    run.reaches("wait")
    run.requests.ask_pause(now=False)
    run.reaches("pause")
    assert eventually(lambda: time.time() > run.metas("wait")[0]["until"] + 0.5)
    assert len(run.metas("iteration_start")) == 1
    run.requests.end_pause()
    assert run.ended()[0] == 0


def test_a_pause_takes_effect_during_a_sleep(start: Start) -> None:
    run = start("echo x", "2", "--sleep", "2")
    run.reaches("iteration_end")
    run.requests.ask_pause(now=False)
    run.reaches("pause")
    time.sleep(2.2)
    assert len(run.metas("iteration_start")) == 1
    run.requests.end_pause()
    assert (run.ended()[0], run.outcomes) == (2, ["ok", "ok"])


def test_a_pause_takes_effect_before_the_first_iteration(start: Start, repo: Path) -> None:
    run = start("echo x", "1", "--verify", f"touch .git/checking; {GATE}")
    assert eventually((repo / ".git" / "checking").exists)
    run.requests.ask_pause(now=False)
    (repo / ".git" / "go").touch()
    run.reaches("pause")
    assert run.outcomes == []
    run.requests.end_pause()
    assert run.ended()[0] == 2


@pytest.mark.parametrize(("how", "code"), [("int", 130), ("term", 143), ("stop", 130)])
def test_a_paused_run_can_be_ended_at_once(ralph: Ralph, start: Start, how: str, code: int) -> None:
    run = start("echo x", "--sleep", "600")
    run.reaches("iteration_end")
    run.requests.ask_pause(now=False)
    run.reaches("pause")
    began = time.monotonic()
    if how == "stop":
        assert ralph("stop").returncode == 0
    else:
        os.kill(run.process.pid, signal.SIGINT if how == "int" else signal.SIGTERM)
    assert run.ended()[0] == code
    assert time.monotonic() - began < 10
    assert run.end["end"] == {"int": "interrupted", "term": "terminated", "stop": "stopped"}[how]


def test_a_pause_can_be_canceled_before_it_begins(ralph: Ralph, start: Start, repo: Path) -> None:
    run = start(f"echo started; {GATE}", "2")
    run.says("started")
    ralph("pause")
    assert "the pause is canceled" in ralph("resume").stdout
    (repo / ".git" / "go").touch()
    assert (run.ended()[0], states(run)) == (2, [])


def test_a_run_that_is_not_paused_cannot_be_resumed(ralph: Ralph, start: Start) -> None:
    run = start("echo started; sleep 600")
    run.says("started")
    answer = ralph("resume")
    assert answer.returncode == 64
    assert answer.stderr == f"ralph: run {run.run_id} is not paused: it is running\n"


def test_resume_finds_the_paused_one_of_several_runs(ralph: Ralph, start: Start, repo: Path) -> None:
    going = start("echo started; sleep 600", "--exclusive=no")
    held = start(f"echo started; {GATE}", "2", "--exclusive=no")
    held.says("started")
    assert ralph("pause", held.run_id).returncode == 0
    (repo / ".git" / "go").touch()
    held.reaches("pause")
    assert held.metas("pause")[0]["go_on"] == f"ralph resume {held.run_id}"
    assert ralph("resume").returncode == 0
    assert held.ended()[0] == 2
    assert going.process.poll() is None
