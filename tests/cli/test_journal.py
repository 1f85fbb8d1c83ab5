"""`ralph runs`, `show` and `tail` on real runs: ended, going on, cut short."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from processes import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Ralph = Callable[..., subprocess.CompletedProcess[str]]

#: bytes that a terminal, a JSON encoder and a line reader each dislike
NASTY = rb"printf 'a\0b\377\r\n\033[31mred\nno newline'"


@pytest.fixture
def two(ralph: Ralph, repo: Path) -> Path:
    """A run of two iterations."""
    command = "printf 'turn %s\\n' $RALPH_ITERATION; echo oops-$RALPH_ITERATION >&2; touch made-$RALPH_ITERATION"
    assert ralph("run", "2", "--agent-cmd", command).returncode == 2
    return repo


@pytest.fixture
def going(repo: Path) -> Iterator[subprocess.Popen[str]]:
    """A run that waits for a file named `go`."""
    command = "echo started; while [ ! -e go ]; do sleep 0.05; done; echo '<promise>COMPLETE</promise>'"
    process = subprocess.Popen(
        [sys.executable, "-m", "ralph", "run", "--agent-cmd", command],
        cwd=repo,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "started" in line:
            break
    yield process
    process.terminate()
    process.communicate(timeout=20)


def test_runs_lists_them_oldest_first(ralph: Ralph, two: Path) -> None:
    ralph("run", "--agent-cmd", "echo '<promise>COMPLETE</promise>'")
    first, second = ralph("runs").stdout.splitlines()
    assert "limit" in first
    assert "2 iterations" in first
    assert "complete" in second
    rows = [json.loads(line) for line in ralph("runs", "--json").stdout.splitlines()]
    assert [(r["end"], r["exit_code"], r["iterations"]) for r in rows] == [("limit", 2, 2), ("complete", 0, 1)]
    assert (two / ".ralph" / "runs" / rows[0]["run"]).is_dir()


def test_show_is_what_the_screen_showed(ralph: Ralph, repo: Path) -> None:
    screen = ralph("run", "2", "--agent-cmd", "echo hello; echo oops >&2").stdout
    assert ralph("show").stdout == screen


def test_show_is_what_the_json_screen_showed(ralph: Ralph, repo: Path) -> None:
    screen = ralph("run", "2", "--agent-cmd", "echo hello", "--ui", "json").stdout
    assert ralph("show", "--json").stdout == screen
    assert [json.loads(line)["seq"] for line in screen.splitlines()] == list(range(1, len(screen.splitlines()) + 1))


def test_one_iteration_alone(ralph: Ralph, two: Path) -> None:
    text = ralph("show", "--iteration", "2").stdout
    assert "turn 2" in text
    assert "turn 1" not in text
    events = [json.loads(line) for line in ralph("show", "-n", "1", "--json").stdout.splitlines()]
    assert {event["iteration"] for event in events} == {1}
    missing = ralph("show", "-n", "3")
    assert missing.returncode == 64
    assert "has no iteration 3 (it has 2)" in missing.stderr


def test_raw_is_byte_for_byte(ralph: Ralph, repo: Path) -> None:
    ralph("run", "1", "--agent-cmd", NASTY.decode("ascii"))
    raw = subprocess.run(
        [sys.executable, "-m", "ralph", "show", "--raw"], cwd=repo, capture_output=True, timeout=30, check=True
    )
    assert raw.stdout == b"a\0b\xff\r\n\x1b[31mred\nno newline"


def test_raw_of_one_iteration_and_of_stderr(ralph: Ralph, two: Path) -> None:
    assert ralph("show", "--raw").stdout == "turn 1\nturn 2\n"
    assert ralph("show", "--raw", "-n", "2").stdout == "turn 2\n"
    assert ralph("show", "--raw", "--stderr").stdout == "oops-1\noops-2\n"
    both = ralph("show", "--raw", "--json")
    assert (both.returncode, both.stdout) == (64, "")


def test_a_run_is_named_by_the_beginning_of_its_id(ralph: Ralph, two: Path) -> None:
    (run,) = os.listdir(two / ".ralph" / "runs")
    assert ralph("show", run).stdout == ralph("show", run[:12]).stdout == ralph("show", "latest").stdout
    unknown = ralph("show", "20010101")
    assert unknown.returncode == 64
    assert "20010101" in unknown.stderr
    assert "ralph runs" in unknown.stderr


@pytest.mark.parametrize("command", ["runs", "show", "tail"])
def test_where_nothing_ran_that_is_said(ralph: Ralph, tmp_path: Path, command: str) -> None:
    result = ralph(command)
    assert result.returncode == 64
    assert "no runs" in result.stderr


def test_they_are_found_from_a_folder_below(ralph: Ralph, two: Path) -> None:
    (two / "below").mkdir()
    assert "turn 2" in ralph("show", cwd=two / "below").stdout


def test_tail_shows_the_end(ralph: Ralph, two: Path) -> None:
    assert len(ralph("tail", "-n", "1", "--json").stdout.splitlines()) == 1
    text = ralph("tail", "-n", "3").stdout
    assert "Iterations 2" in text
    assert "turn 1" not in text
    assert ralph("tail", "-n", "0").stdout == ""
    assert "Iterations 2" in ralph("tail", "-f").stdout


def test_a_run_that_is_going_on_can_be_read(ralph: Ralph, repo: Path, going: subprocess.Popen[str]) -> None:
    assert "running" in ralph("runs").stdout
    shown = ralph("show")
    assert "started" in shown.stdout
    assert "still running" in shown.stderr
    assert ralph("show", "--raw").stdout == "started\n"


def test_tail_follows_until_the_end(repo: Path, going: subprocess.Popen[str]) -> None:
    tail = subprocess.Popen([sys.executable, "-m", "ralph", "tail", "-f"], cwd=repo, stdout=subprocess.PIPE, text=True)
    assert tail.stdout is not None
    for line in tail.stdout:
        if "started" in line:
            break
    (repo / "go").touch()
    rest, _ = tail.communicate(timeout=20)
    assert tail.returncode == 0
    assert "Complete (exit code 0)" in rest


def test_ctrl_c_ends_following_without_a_word(repo: Path, going: subprocess.Popen[str]) -> None:
    tail = subprocess.Popen(
        [sys.executable, "-m", "ralph", "tail", "-f"],
        cwd=repo,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert tail.stdout is not None
    tail.stdout.readline()
    tail.send_signal(signal.SIGINT)
    _, errors = tail.communicate(timeout=20)
    assert (tail.returncode, errors) == (130, "")


def test_a_run_that_was_cut_short_can_be_read(ralph: Ralph, repo: Path, going: subprocess.Popen[str]) -> None:
    going.kill()
    going.wait(10)
    events = repo / ".ralph" / "latest" / "events.jsonl"
    with events.open("ab") as file:
        file.write(b'{"seq":99,"time":1.0,"iteration":1,"type":"te')  # a torn last line
    deadline = time.monotonic() + 10
    while "running" in (listed := ralph("runs").stdout) and time.monotonic() < deadline:
        time.sleep(0.1)  # the keeper ends the agent first
    assert "died" in listed
    shown = ralph("show")
    assert "started" in shown.stdout
    assert "cut short" in shown.stderr
    followed = ralph("tail", "-f")
    assert followed.returncode == 0
    assert "cut short" in followed.stderr


def test_following_an_old_run_that_died_does_not_wait_for_a_new_one(
    ralph: Ralph, repo: Path, going: subprocess.Popen[str]
) -> None:
    old = repo / ".ralph" / "runs" / "20010101-000000-00000"
    (old / "iterations").mkdir(parents=True)
    (old / "events.jsonl").write_bytes(b"")
    result = ralph("tail", "-f", "20010101", timeout=20)
    assert result.returncode == 0
    assert "cut short" in result.stderr


def to_nobody(repo: Path, command: str) -> tuple[int, str]:
    """The exit code and stderr of a command whose reader (`| head -1`) has gone away."""
    read, write = os.pipe()
    os.close(read)
    line = [sys.executable, "-m", "ralph", *command.split()]
    with os.fdopen(write, "wb") as pipe:
        done = subprocess.run(line, cwd=repo, stdout=pipe, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    return done.returncode, done.stderr


def test_a_reader_that_goes_away_ends_a_command_silently(ralph: Ralph, repo: Path) -> None:
    ralph("run", "1", "--agent-cmd", "seq 1 3000", "--ui", "quiet")
    commands = ("show", "show --raw", "show --json", "runs", "runs --json", "tail -n 5000", "tail -f")
    assert {command: to_nobody(repo, command) for command in commands} == dict.fromkeys(commands, (141, ""))


def test_output_that_cannot_be_written_is_not_taken_for_a_journal_that_cannot_be_read(ralph: Ralph, repo: Path) -> None:
    ralph("run", "1", "--agent-cmd", "seq 1 3000", "--ui", "quiet")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ralph", "show", "--raw"],
            cwd=repo,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert "the output cannot be written: No space left on device" in done.stderr


def test_hostile_words_of_an_agent_stay_harmless_in_the_list(ralph: Ralph, repo: Path) -> None:
    event = '{"type":"meta","meta":{"kind":"error","class":"auth","message":"log \\u001b]0;pwned\\u0007 in"}}'
    ralph("run", "1", "--transcript", "rtf1", "--agent-cmd", f"echo '@@RALPH@@ {event}'; exit 1")
    assert "\x1b" not in ralph("runs").stdout
    assert "\x07" not in ralph("show").stdout


def test_a_run_never_takes_less_than_no_time(repo: Path, ralph: Ralph) -> None:
    """The clock was set back after it began."""
    going = subprocess.Popen(
        [sys.executable, "-m", "ralph", "run", "--agent-cmd", "touch ready; sleep 600"],
        cwd=repo,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert eventually((repo / "ready").exists)
        file = repo / ".ralph" / "latest" / "run.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"started": time.time() + 3600}))
        row = json.loads(ralph("runs", "--json").stdout)
        assert (row["end"], row["seconds"]) == ("running", 0)
    finally:
        going.send_signal(signal.SIGINT)
        going.wait(30)
