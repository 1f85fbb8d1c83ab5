"""Outcomes and exit codes from end to end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from loop.conftest import Ran, ai, meta, rtf1
from processes import eventually, marked, read_pid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Run = Callable[..., Ran]

MARK = "<promise>COMPLETE</promise>"


@pytest.mark.parametrize("name", ["auth", "quota", "permission_denied", "question"])
def test_what_only_a_person_can_resolve_ends_the_run_with_5(run_rtf1: Run, name: str) -> None:
    ran = run_rtf1(meta("error", message="the provider says no", **{"class": name}) + "\nexit 1")
    assert (ran.code, ran.outcomes, ran.end["end"]) == (5, [name], "needs_person")
    assert "the provider says no" in ran.end["reason"]


@pytest.mark.parametrize("name", ["context_exceeded", "failed"])
def test_other_errors_are_retried_up_to_the_limit(run_rtf1: Run, name: str) -> None:
    ran = run_rtf1(meta("error", message="bad", **{"class": name}) + "\nexit 1", "--max-failures", "2")
    assert (ran.code, ran.outcomes) == (1, [name, name])


@pytest.mark.parametrize("name", ["rate_limited", "overloaded"])
def test_a_busy_provider_is_retried_after_a_pause(run_rtf1: Run, name: str) -> None:
    error = meta("error", message="slow down", **{"class": name})
    ran = run_rtf1(f"if [ $RALPH_ITERATION = 1 ]; then\n{error}\nexit 1\nfi\n{ai(MARK)}")
    assert (ran.code, ran.outcomes) == (0, [name, "ok"])
    first, second = (e["time"] for e in ran.events if e.get("meta", {}).get("kind") == "iteration_start")
    assert second - first >= 2
    assert "waiting" in ran.out


def test_an_error_that_the_agent_recovered_from_does_not_count(run_rtf1: Run) -> None:
    script = "\n".join([meta("error", message="x", **{"class": "auth"}), ai(MARK), meta("result", ok=True)])
    assert run_rtf1(script).code == 0


def test_a_failed_result_is_a_failure_whatever_the_exit_code(run_rtf1: Run) -> None:
    script = "\n".join([ai(MARK), meta("result", ok=False, reason="gave up", **{"class": "failed"})])
    ran = run_rtf1(script, "1")
    assert (ran.code, ran.outcomes) == (2, ["failed"])


def test_error_words_of_the_model_or_a_tool_are_not_an_outcome(run_rtf1: Run) -> None:
    words = "401 Unauthorized: rate limit exceeded, please log in (quota)"
    script = "\n".join([ai(words), rtf1("tool_output", tool={"id": "1"}, text=words), f"echo '{words}' >&2", ai(MARK)])
    assert run_rtf1(script).outcomes == ["ok"]


def test_failures_in_a_row_end_the_run_with_1(run: Run) -> None:
    ran = run("echo trying; exit 4", "--max-failures", "3")
    assert (ran.code, ran.outcomes, ran.end["end"]) == (1, ["failed"] * 3, "failed")
    assert "exited with code 4" in ran.end["reason"]


def test_failures_that_are_not_in_a_row_do_not_end_the_run(run: Run) -> None:
    script = f"echo x; [ $RALPH_ITERATION = 5 ] && echo '{MARK}'; exit $((RALPH_ITERATION % 2 == 0))"
    ran = run(script, "--max-failures", "2")
    assert (ran.code, ran.outcomes) == (0, ["ok", "failed", "ok", "failed", "ok"])


def test_the_iteration_limit_ends_the_run_with_2(run: Run) -> None:
    ran = run("echo working", "2")
    assert (ran.code, len(ran.iterations), ran.end["end"]) == (2, 2, "limit")
    assert "reached the limit of 2 iterations" in ran.end["reason"]


def test_a_silent_agent_is_empty(run: Run) -> None:
    ran = run("exit 0", "1")
    assert (ran.code, ran.outcomes) == (2, ["empty"])


def test_a_signal_is_a_crash(run: Run) -> None:
    ran = run("echo x; kill -SEGV $$", "1")
    assert ran.outcomes == ["crashed"]
    assert "SIGSEGV" in ran.iterations[0]["why"]


def test_random_bytes_give_a_clear_outcome(run: Run) -> None:
    ran = run("head -c 300000 /dev/urandom", "1")
    assert (ran.code, ran.outcomes) == (2, ["ok"])
    assert (ran.root / "iterations" / "0001" / "stdout.raw").stat().st_size == 300_000


@pytest.mark.endurance
def test_a_line_of_64_mib_gives_a_clear_outcome_and_is_kept_whole(run: Run) -> None:
    ran = run(f"head -c {64 << 20} /dev/zero | tr '\\0' x; echo; echo '{MARK}'", "1", timeout=120)
    assert (ran.code, ran.outcomes) == (0, ["ok"])
    lengths = [len(e["text"]) for e in ran.events if e["type"] == "text"]
    assert lengths == [64 << 20, len(MARK)]
    assert (ran.root / "iterations" / "0001" / "stdout.raw").stat().st_size == (64 << 20) + 1 + len(MARK) + 1


@pytest.mark.parametrize("command", ["sleep 600", "trap '' TERM; (setsid sleep 600 &) ; sleep 600"])
def test_silence_is_timeout_idle_and_leaves_no_process(run: Run, mark: str, command: str) -> None:
    ran = run(command, "1", "--idle-timeout", "0.3", "--grace", "0.3")
    assert (ran.code, ran.outcomes) == (2, ["timeout_idle"])
    assert marked(mark) == {}


def test_talking_for_too_long_is_timeout_wall(run: Run) -> None:
    ran = run("while :; do echo x; sleep 0.1; done", "1", "--wall-timeout", "0.5")
    assert ran.outcomes == ["timeout_wall"]


def test_the_run_time_limit_ends_a_running_iteration(run: Run) -> None:
    ran = run("echo x; sleep 600", "--max-runtime", "0.5")
    assert (ran.code, ran.end["end"]) == (2, "limit")
    assert "run time" in ran.end["reason"]


def test_tokens_and_cost_are_limits(run_rtf1: Run) -> None:
    spend = ai("x") + "\n" + rtf1("usage", usage={"prompt_tokens": 40, "completion_tokens": 20, "cost_usd": 0.4})
    ran = run_rtf1(spend, "--max-tokens", "100")
    assert (ran.code, len(ran.iterations)) == (2, 2)
    assert "120 tokens" in ran.end["reason"]
    ran = run_rtf1(spend, "--max-cost", "1")
    assert (ran.code, len(ran.iterations)) == (2, 3)


def test_a_working_directory_that_vanishes_is_reported(ralph: Any, repo: Path, mark: str) -> None:
    work = repo / "work"
    work.mkdir()
    done = ralph("run", "-p", "x", "--agent-cmd", f"echo x; rm -r {work}", "3", cwd=work)
    assert done.returncode == 1
    assert "the working directory is gone" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


# -- signals to ralph itself


class Live:
    """A run in the background."""

    def __init__(self, repo: Path, script: str, *flags: str) -> None:
        (repo / ".git" / "agent.sh").write_text(script)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ralph", "run", "--agent-cmd", "bash .git/agent.sh", *flags],
            cwd=repo,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


@pytest.fixture
def live(repo: Path, mark: str) -> Iterator[Callable[..., Live]]:
    started: list[Live] = []

    def start(script: str, *flags: str) -> Live:
        started.append(Live(repo, script, *flags))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()


@pytest.mark.parametrize(
    ("number", "code", "end"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated"), (signal.SIGHUP, 143, "terminated")],
)
def test_a_signal_ends_the_run_cleanly(
    live: Callable[..., Live], repo: Path, mark: str, number: int, code: int, end: str
) -> None:
    going = live("echo $$ > .git/pid; echo x; sleep 600")
    read_pid(repo / ".git" / "pid")
    going.process.send_signal(number)
    status, out, err = going.end()
    assert (status, err) == (code, "")
    assert f"exit code {code}" in out
    ran = Ran(subprocess.CompletedProcess([], status, out, err), repo)
    assert (ran.end["end"], ran.outcomes) == (end, ["interrupted"])
    assert marked(mark) == {}


def test_a_second_interrupt_does_not_wait_for_a_stubborn_agent(
    live: Callable[..., Live], repo: Path, mark: str
) -> None:
    going = live("trap 'touch .git/heard' TERM; echo $$ > .git/pid; while :; do sleep 0.1; done", "--grace", "100")
    read_pid(repo / ".git" / "pid")
    going.process.send_signal(signal.SIGINT)
    assert eventually((repo / ".git" / "heard").exists)
    going.process.send_signal(signal.SIGINT)
    status, _, err = going.end()
    assert (status, err) == (130, "")
    assert marked(mark) == {}


def test_an_interrupt_in_the_pause_between_two_iterations(live: Callable[..., Live], repo: Path) -> None:
    going = live("echo x", "--sleep", "600")
    events = repo / ".ralph" / "latest" / "events.jsonl"
    assert eventually(lambda: events.exists() and b"iteration_end" in events.read_bytes())
    going.process.send_signal(signal.SIGINT)
    assert going.end()[0] == 130


def test_an_interrupt_while_a_check_runs(live: Callable[..., Live], repo: Path, mark: str) -> None:
    going = live(f"echo '{MARK}'", "--verify", "echo $$ > .git/pid; sleep 600")
    read_pid(repo / ".git" / "pid")
    going.process.send_signal(signal.SIGINT)
    assert going.end()[0] == 130
    assert marked(mark) == {}


@pytest.mark.parametrize("script", ["sleep 600", "trap '' TERM; (setsid sleep 600 &) ; sleep 600"])
def test_after_kill_9_no_agent_is_left_and_the_journal_is_readable(
    live: Callable[..., Live], ralph: Any, repo: Path, mark: str, script: str
) -> None:
    going = live(f"echo first words; echo $$ > .git/pid; {script}")
    read_pid(repo / ".git" / "pid")
    events = repo / ".ralph" / "latest" / "events.jsonl"
    assert eventually(lambda: b"first words" in events.read_bytes())
    going.process.kill()
    going.end()
    assert eventually(lambda: not marked(mark))
    shown = ralph("show")
    assert shown.returncode == 0
    assert "first words" in shown.stdout
    assert "cut short" in shown.stderr
    assert "died" in ralph("runs").stdout
    again = ralph("run", "--agent-cmd", f"echo '{MARK}'")
    assert again.returncode == 0, "the lock of a dead process is no obstacle"


def test_two_runs_at_once_in_one_directory_are_refused(live: Callable[..., Live], ralph: Any, repo: Path) -> None:
    going = live("echo $$ > .git/pid; echo x; sleep 600")
    read_pid(repo / ".git" / "pid")
    second = ralph("run", "--agent-cmd", "echo x")
    assert second.returncode == 64
    assert "already active" in second.stderr
    assert str(going.process.pid) in second.stderr
    assert len(os.listdir(repo / ".ralph" / "runs")) == 1
    going.process.send_signal(signal.SIGINT)
    going.end()


@pytest.mark.parametrize(("after", "outcomes", "code"), [("2", 2, 5), ("0", 3, 1)])
def test_an_agent_that_is_denied_a_tool_may_get_more_tries(
    run_rtf1: Run, repo: Path, after: str, outcomes: int, code: int
) -> None:
    (repo / "ralph.yml").write_text(f"denied_after: {after}\n")
    ran = run_rtf1(meta("error", message="no", **{"class": "permission_denied"}), "9", "--max-failures", "3")
    assert (ran.outcomes, ran.code) == (["permission_denied"] * outcomes, code)
