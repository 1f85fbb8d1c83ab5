"""Scripts that cannot work, hooks that fail, agents that crash, hang or leave processes behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from agent_scripts import DONE, iteration, metas, outcomes, says, texts, write

from processes import eventually, nothing_left_behind

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Ralph = Callable[..., subprocess.CompletedProcess[str]]


def refused(result: subprocess.CompletedProcess[str], repo: Path, *parts: str) -> None:
    """Checks for an error before anything has run."""
    assert result.returncode == 64, result
    assert "Traceback" not in result.stderr
    for part in parts:
        assert part in result.stderr
    assert not (repo / ".ralph").exists()


# -- before anything runs


def test_a_missing_script_is_refused(ralph: Ralph, repo: Path) -> None:
    write(repo, config="AGENT=fkae\n")
    refused(ralph("run"), repo, "there is no agent script agents/fkae.sh (config:1)", "did you mean 'fake'")


def test_a_missing_function_is_refused_by_name(ralph: Ralph, repo: Path) -> None:
    write(repo, "unset -f agent_extract_response agent_format_display\n")
    refused(ralph("run"), repo, "agents/fake.sh does not define agent_extract_response, agent_format_display")


def test_a_missing_program_is_refused_with_how_to_install_it(ralph: Ralph, repo: Path) -> None:
    write(repo, "AGENT_CLI=no-such-agent\n")
    refused(ralph("run"), repo, "needs 'no-such-agent' (its AGENT_CLI)")
    write(repo, "AGENT_CLI=/nowhere/amp\n", name="amp", config="AGENT=amp\n")
    refused(ralph("run"), repo, "npm install -g @sourcegraph/amp")
    write(repo, "unset AGENT_CLI\n")
    refused(ralph("run"), repo, "does not set AGENT_CLI")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("if then\n", "syntax error"),
        ("echo $NO_SUCH_THING\n", "unbound variable"),
        ("echo sorry >&2; exit 3\n", "sorry"),
    ],
)
def test_a_script_that_cannot_be_sourced_is_refused_with_bashs_message(
    ralph: Ralph, repo: Path, body: str, message: str
) -> None:
    write(repo, body)
    refused(ralph("run"), repo, "fake.sh", message)


def test_flags_that_have_no_effect_are_refused(ralph: Ralph, repo: Path) -> None:
    write(repo)
    refused(ralph("run", "--pty"), repo, "--pty has no effect")
    refused(ralph("run", "--model", "x"), repo, "--model has no effect with an agent script")


# -- hooks


def test_a_hook_that_exits_the_shell_before_the_agent_fails_the_iteration(ralph: Ralph, repo: Path) -> None:
    body = "agent_pre_iteration() { SEEN=yes; exit 7; }\nagent_invoke() { touch ran; }\n"
    write(repo, body + 'agent_post_iteration() { log "after all: $SEEN"; }\n')
    result = ralph("run", "1")
    assert result.returncode == 2
    assert outcomes(repo) == ["failed"]
    assert "agent_pre_iteration in agents/fake.sh exited the shell" in result.stdout
    assert "after all: yes" in texts(repo, "SYS")
    assert metas(repo, "iteration_end")[0]["exit"] == 7
    assert not (repo / "ran").exists()


def test_an_unset_variable_in_a_hook_fails_the_iteration(ralph: Ralph, repo: Path) -> None:
    write(repo, 'agent_pre_iteration() { echo "$NO_SUCH_THING"; }\n')
    result = ralph("run", "1")
    assert outcomes(repo) == ["failed"]
    assert "unbound variable" in result.stdout


@pytest.mark.parametrize(("how", "notice"), [("return 3", "returned 3"), ("exit 3", "exited the shell")])
def test_a_hook_that_fails_after_the_agent_is_only_reported(ralph: Ralph, repo: Path, how: str, notice: str) -> None:
    write(repo, says(f"say: {DONE}") + f"agent_post_iteration() {{ {how}; }}\n")
    result = ralph("run")
    assert result.returncode == 0, result.stdout
    assert f"agent_post_iteration {notice}" in result.stdout


def test_a_hook_that_returns_non_zero_before_the_agent_does_not_stop_it(ralph: Ralph, repo: Path) -> None:
    write(repo, says(f"say: {DONE}") + "agent_pre_iteration() { set -e; false; }\n")
    # `set -e` in a hook makes the shell exit
    assert ralph("run", "1").returncode == 2
    write(repo, says(f"say: {DONE}") + "agent_pre_iteration() { return 1; }\n")
    assert ralph("run", "1").returncode == 0


def test_the_post_iteration_hook_runs_after_a_failure(ralph: Ralph, repo: Path) -> None:
    body = f"agent_invoke() {{ echo 'say: {DONE}'; exit 9; }}\nagent_post_iteration() {{ log after; }}\n"
    write(repo, body, config="AGENT=fake\nMAX_RETRIES=2\n")
    result = ralph("run")
    assert result.returncode == 1
    assert outcomes(repo) == ["failed", "failed"]
    assert texts(repo, "SYS").count("after") == 2
    assert "but the iteration was not a success" in metas(repo, "iteration_end")[0]["completion"]


# -- crashes, timeouts and interrupts


def test_an_agent_that_is_killed_by_a_signal_has_crashed(ralph: Ralph, repo: Path) -> None:
    write(repo, "agent_invoke() { echo 'say: working'; bash -c 'kill -SEGV $$'; }\n")
    ralph("run", "1")
    assert outcomes(repo) == ["crashed"]
    assert "SIGSEGV" in metas(repo, "iteration_end")[0]["why"]


def test_a_hanging_agent_times_out_and_the_hook_still_runs(
    ralph: Ralph, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "agent_invoke() { echo 'say: working'; sleep 300; }\nagent_post_iteration() { log after; }\n"
    write(repo, body)
    with nothing_left_behind(monkeypatch):
        ralph("run", "1", "--idle-timeout", "1s", timeout=30)
    assert outcomes(repo) == ["timeout_idle"]
    assert "after" in texts(repo, "SYS")


def test_output_of_an_agent_that_is_being_stopped_is_kept(ralph: Ralph, repo: Path) -> None:
    body = "agent_invoke() { trap 'echo last words; exit 0' TERM; echo first; sleep 300 & wait; }\n"
    write(repo, body)
    ralph("run", "1", "--idle-timeout", "1s", timeout=30)
    assert iteration(repo).joinpath("stdout.raw").read_text() == "first\nlast words\n"


def test_raw_output_that_the_filter_hides_counts_as_activity(ralph: Ralph, repo: Path) -> None:
    body = "agent_invoke() { for i in 1 2 3 4; do echo 'tool: busy'; sleep 0.6; done; " + f"echo 'say: {DONE}'; }}\n"
    write(repo, body + "agent_format_display() { cat >/dev/null; }\n")
    assert ralph("run", "1", "--idle-timeout", "1500ms").returncode == 0


@pytest.mark.parametrize("transcript", ["auto", "plain"])
def test_a_process_that_keeps_the_output_open_does_not_block_the_iteration(
    ralph: Ralph, repo: Path, monkeypatch: pytest.MonkeyPatch, transcript: str
) -> None:
    write(repo, f"agent_invoke() {{ sleep 300 & echo 'say: {DONE}'; }}\n")
    began = time.monotonic()
    with nothing_left_behind(monkeypatch):
        result = ralph("run", "1", "--transcript", transcript, timeout=60)
    assert result.returncode == 0, result.stdout
    assert time.monotonic() - began < 15
    assert "left processes behind" in result.stdout


def test_an_interrupt_stops_the_agent_and_runs_the_hook(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = "agent_invoke() { echo 'say: working'; touch started; sleep 300; }\nagent_post_iteration() { log after; }\n"
    write(repo, body)
    with nothing_left_behind(monkeypatch):
        process = subprocess.Popen(
            [sys.executable, "-m", "ralph", "run"], cwd=repo, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        assert eventually((repo / "started").exists, 20)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
    assert outcomes(repo) == ["interrupted"]
    assert "after" in texts(repo, "SYS")


def test_a_program_that_vanishes_between_iterations_is_reported(ralph: Ralph, repo: Path) -> None:
    tool = repo / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    write(repo, "AGENT_CLI=./tool\nagent_invoke() { rm -f tool; echo say: working; }\n")
    result = ralph("run", "2")
    assert outcomes(repo) == ["ok", "failed"]
    assert "./tool can no longer be found" in result.stdout
