"""A repository.s own code runs only after the user approved it; what the user typed needs no approval."""

from __future__ import annotations

import os
import pty
import select
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    Ralph = Callable[..., subprocess.CompletedProcess[str]]

DONE = "<promise>COMPLETE</promise>"
AGENT = f"agent_cmd: touch ran; echo '{DONE}'\n"


@pytest.fixture(autouse=True)
def nothing_approved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RALPH_TRUST")


def refused(done: subprocess.CompletedProcess[str], repo: Path, *parts: str) -> None:
    assert done.returncode == 64, done
    assert done.stdout == ""
    assert "ralph trust" in done.stderr
    assert "--trust" in done.stderr
    for part in parts:
        assert part in done.stderr
    assert not (repo / "ran").exists()
    assert not (repo / ".ralph" / "runs").exists()


def script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(0o755)
    return path


def test_a_command_in_ralph_yml_needs_approval_and_again_when_it_changes(ralph: Ralph, repo: Path) -> None:
    (repo / "ralph.yml").write_text(AGENT)
    refused(ralph("run"), repo, "agent_cmd", "touch ran", "ralph.yml:1")
    done = ralph("trust")
    assert done.returncode == 0, done
    assert "touch ran" in done.stdout
    again = ralph("trust").stdout
    assert "You have already approved all of it" in again
    assert "changed" not in again
    assert ralph("run").returncode == 0
    (repo / "ran").unlink()
    (repo / "ralph.yml").write_text(f"# another line changes nothing\nmax_iterations: 3\n{AGENT}")
    assert ralph("run").returncode == 0
    (repo / "ran").unlink()
    (repo / "ralph.yml").write_text(AGENT.replace("touch ran", "touch ran other"))
    done = ralph("run")
    assert (done.returncode, (repo / "ran").exists()) == (64, False)
    assert "changed since you approved it" in done.stderr


@pytest.mark.parametrize(
    "config",
    [
        "verify: [touch ran]\nagent: demo\n",
        "agent: custom\ncommand: touch\nargs: [ran]\n",
        "agent: claude\ncommand: ./ran.sh\n",  # ralph would ask it for its version before the start
        "cli:\n  backend: custom\n  command: ./ran.sh\n",
        "claude_command: ./ran.sh\n",
    ],
)
def test_every_command_in_ralph_yml_needs_approval(ralph: Ralph, repo: Path, config: str) -> None:
    script(repo / "ran.sh", f"touch {repo}/ran")
    (repo / "ralph.yml").write_text(config)
    refused(ralph("run"), repo)
    done = ralph("run", "--dry-run")
    assert done.returncode == 0, done
    assert "ralph trust" in done.stdout
    assert ("ran.sh" if "ran.sh" in config else "touch") in done.stdout
    assert ralph("doctor").returncode == 1
    assert not (repo / "ran").exists()


def test_the_file_that_a_command_runs_needs_approval_too(ralph: Ralph, repo: Path) -> None:
    program = script(repo / "tools" / "agent.sh", f"echo '{DONE}'")
    (repo / "ralph.yml").write_text("agent_cmd: FAST=1 bash -e tools/agent.sh {prompt}\n")
    assert "tools/agent.sh" in ralph("trust").stdout
    assert ralph("run").returncode == 0
    script(program, f"touch ran; echo '{DONE}'")
    done = ralph("run")
    assert (done.returncode, (repo / "ran").exists()) == (64, False)
    assert "tools/agent.sh" in done.stderr


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("timeout 5 ./x", "x"),
        ("cd . && ./x", "x"),
        ("make -f x", "x"),
        ("make check", "Makefile"),
        ("env -u X ./x", "x"),
        ("bash -o pipefail x", "x"),
        ("npx x", "node_modules/.bin/x"),
    ],
)
def test_what_a_check_runs_needs_approval_in_any_form(ralph: Ralph, repo: Path, command: str, file: str) -> None:
    script(repo / file, "exit 0")
    (repo / "ralph.yml").write_text(f"verify: {command}\n")
    assert file in ralph("trust").stdout
    script(repo / file, "touch ran")
    done = ralph("run", "1", "--agent-cmd", f"echo '{DONE}'")
    assert (done.returncode, (repo / "ran").exists()) == (64, False)
    assert file in done.stderr


def test_a_known_agent_and_limits_need_no_approval(ralph: Ralph, repo: Path) -> None:
    (repo / "ralph.yml").write_text("agent: demo\nmax_iterations: 1\nmax_runtime: 1h\nsleep: 0\nmodel: small\n")
    done = ralph("run", "--dry-run")
    assert "trust" not in done.stdout, done
    assert "nothing to approve" in ralph("trust").stdout


@pytest.mark.parametrize("how", ["flag", "environment", "own file"])
def test_the_users_own_commands_need_no_approval(ralph: Ralph, repo: Path, how: str) -> None:
    command = f"touch ran; echo '{DONE}'"
    if how == "own file":
        own = Path(os.environ["HOME"]) / ".config" / "ralph" / "ralph.yml"
        own.parent.mkdir(parents=True)
        own.write_text(AGENT + "verify: ['true']\n")
    flags = ["--agent-cmd", command, "--verify", "true"] if how == "flag" else []
    environment = {"AGENT_CMD": command, "RALPH_VERIFY": "true"} if how == "environment" else {}
    done = ralph("run", *flags, env=environment)
    assert done.returncode == 0, done
    assert (repo / "ran").exists()


def test_the_flag_and_the_variable_approve_for_one_run(ralph: Ralph, repo: Path) -> None:
    (repo / "ralph.yml").write_text('agent_cmd: echo "trust=${RALPH_TRUST-none}"; echo \'' + DONE + "'\n")
    done = ralph("run", "--trust")
    assert done.returncode == 0, done
    assert "trust=none" in done.stdout  # what the agent starts must ask again
    assert ralph("run", env={"RALPH_TRUST": "1"}).returncode == 0
    assert ralph("run").returncode == 64
    assert ralph("run", env={"RALPH_TRUST": "0"}).returncode == 64


def test_a_file_cannot_approve_itself(ralph: Ralph, repo: Path) -> None:
    (repo / "ralph.yml").write_text("trust: true\ncli:\n  trust: true\n" + AGENT)
    refused(ralph("run"), repo)


def test_approving_a_ralph_yml_covers_all_directories_below_it(ralph: Ralph, repo: Path) -> None:
    (repo / "ralph.yml").write_text(AGENT)
    for name in ("a", "b"):
        (repo / name).mkdir()
    assert ralph("run", "-p", "x", cwd=repo / "a").returncode == 64
    ralph("trust", cwd=repo / "a")
    assert ralph("run", "-p", "x", cwd=repo / "b").returncode == 0


def test_an_approval_is_private_and_for_the_real_directory(
    ralph: Ralph, repo: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (repo / "ralph.yml").write_text(AGENT)
    link = tmp_path_factory.mktemp("links") / "link"
    link.symlink_to(repo)
    ralph("trust", cwd=link)
    folder = Path(os.environ["HOME"]) / ".config" / "ralph" / "trust"
    (kept,) = folder.iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert ralph("run", "--ui", "quiet").returncode == 0
    # the same command in another repository is not approved
    other = tmp_path_factory.mktemp("other")
    (other / "ralph.yml").write_text(AGENT)
    assert ralph("run", "-p", "x", cwd=other).returncode == 64
    assert str(repo) in ralph("trust", "--list").stdout
    assert f"Removed your approval for {repo}." in ralph("trust", "--remove").stdout
    assert ralph("run").returncode == 64
    assert "not approved anything" in ralph("trust", "--list").stdout


def test_a_damaged_record_approves_nothing(ralph: Ralph, repo: Path) -> None:
    (repo / "ralph.yml").write_text(AGENT)
    ralph("trust")
    (kept,) = (Path(os.environ["HOME"]) / ".config" / "ralph" / "trust").iterdir()
    kept.write_text("{")
    refused(ralph("run"), repo)


def test_control_characters_cannot_hide_a_command(ralph: Ralph, repo: Path) -> None:
    (repo / "ralph.yml").write_text('agent_cmd: "touch ran \\e[2K\\e[1A # \\u202e harmless"\n')
    done = ralph("run")
    refused(done, repo)
    assert "\x1b" not in done.stderr
    assert "\u202e" not in done.stderr


def test_files_from_init_and_demo_are_approved_until_they_change(
    ralph: Ralph, tmp_path_factory: pytest.TempPathFactory
) -> None:
    here = tmp_path_factory.mktemp("demo")
    demo = ralph("demo", "--fast", "--dir", str(here / "d"), "--ui", "quiet", cwd=here, timeout=120)
    assert demo.returncode == 0, demo
    assert "trust" not in ralph("run", "--dry-run", cwd=here / "d").stdout
    config = here / "d" / "ralph.yml"
    config.write_text(config.read_text().replace("unittest", "unittest  "))
    assert ralph("run", "-p", "x", cwd=here / "d").returncode == 64


def test_a_project_agent_needs_approval(ralph: Ralph, repo: Path) -> None:
    program = script(repo / "bolt", f'[ "$1" = --version ] || touch {repo}/ran; echo "{DONE}"')
    spec = repo / ".ralph" / "agents" / "bolt.toml"
    spec.parent.mkdir(parents=True)
    spec.write_text(f'name = "bolt"\ntitle = "Bolt"\ncommands = ["{program}"]\n[[invocation]]\nprompt = "stdin"\n')
    for arguments in (["--agent", "bolt"], []):
        if not arguments:
            (repo / "ralph.yml").write_text("agent: bolt\n")
        done = ralph("run", *arguments)
        assert done.returncode == 64, done
        assert ".ralph/agents/bolt.toml" in done.stderr
        assert not (repo / "ran").exists()
    ralph("trust")
    assert ralph("run", "--ui", "quiet").returncode == 0
    spec.write_text(spec.read_text() + "# changed\n")
    assert ralph("run").returncode == 64


# -- other conventions


def test_an_agent_script_and_its_config_are_not_read_before_approval(ralph: Ralph, repo: Path) -> None:
    (repo / "config").write_text(f"AGENT=amp\ntouch {repo}/ran\n")
    script(repo / "agents" / "amp.sh", f"touch {repo}/ran")
    for command in (["run"], ["config"]):
        done = ralph(*command)
        assert done.returncode == 64, done
        assert "agents/amp.sh" in done.stderr
    for command in (["run", "--dry-run"], ["trust", "--dry-run"], ["doctor"]):
        done = ralph(*command)
        assert "agents/amp.sh" in done.stdout, done
    assert not (repo / "ran").exists()
    assert ralph("trust").returncode == 0
    assert not (repo / "ran").exists()
    ralph("run", "--dry-run")
    assert (repo / "ran").exists()


@pytest.mark.parametrize("value", ["amp", "agents/amp.sh", "./agents/amp.sh"])
def test_a_script_in_ralph_yml_needs_approval_together_with_its_config(ralph: Ralph, repo: Path, value: str) -> None:
    (repo / "config").write_text(f"touch {repo}/ran\n")
    script(repo / "agents" / "amp.sh", f"touch {repo}/ran")
    (repo / "ralph.yml").write_text(f"agent_script: {value}\n")
    refused(ralph("run"), repo, "agents/amp.sh", "config")


def test_a_script_on_the_command_line_needs_no_approval(ralph: Ralph, repo: Path) -> None:
    (repo / "config").write_text("AGENT=amp\n")
    script(repo / "agents" / "amp.sh", f"touch {repo}/ran")
    ralph("run", "--agent-script", "agents/amp.sh")
    assert (repo / "ran").exists()


def test_a_driver_is_not_run_before_approval(ralph: Ralph, repo: Path) -> None:
    (repo / ".ralphrc").write_text("PLATFORM_DRIVER=mine\nTEST_COMMAND='touch ran'\n")
    script(repo / ".ralph" / "drivers" / "mine.sh", f"touch {repo}/ran")
    refused(ralph("run"), repo, "drivers/mine.sh", "touch ran", ".ralphrc:2")
    assert "drivers/mine.sh" in ralph("run", "--dry-run").stdout
    assert not (repo / "ran").exists()


def test_a_driver_file_that_only_sets_limits_needs_no_approval(ralph: Ralph, repo: Path) -> None:
    (repo / ".ralphrc").write_text("MAX_CALLS_PER_HOUR=50\nCLAUDE_TIMEOUT_MINUTES=5\n")
    assert "nothing to approve" in ralph("trust").stdout


@pytest.mark.parametrize("line", ["CLAUDE_CODE_CMD=./ran.sh", "export LD_PRELOAD=./evil.so"])
def test_a_driver_file_that_names_a_program_or_exports_needs_approval(ralph: Ralph, repo: Path, line: str) -> None:
    script(repo / "ran.sh", f"touch {repo}/ran")
    (repo / ".ralphrc").write_text(f"PLATFORM_DRIVER=claude\n{line}\n")
    refused(ralph("run"), repo, ".ralphrc")


def test_a_provider_command_needs_approval_unless_it_is_the_users(ralph: Ralph, repo: Path) -> None:
    script(repo / "wrap.sh", 'touch ran; echo \'{"type":"result","result":"<<<RALPHEX:ALL_TASKS_DONE>>>"}\'')
    config = repo / ".ralphex" / "config"
    config.parent.mkdir()
    config.write_text("claude_command = ./wrap.sh\n")
    refused(ralph("run"), repo, "claude_command", "./wrap.sh", ".ralphex/config:1", "wrap.sh")
    own = Path(os.environ["HOME"]) / ".config" / "ralphex" / "config"
    own.parent.mkdir(parents=True)
    own.write_text(f"claude_command = {repo}/wrap.sh\n")
    config.write_text("max_iterations = 1\n")
    ralph("run")
    assert (repo / "ran").exists()


def test_as_claude_needs_the_same_approval(ralph: Ralph, repo: Path) -> None:
    (repo / "ralph.yml").write_text(AGENT)
    done = ralph("as-claude", "-p", "hello", "--output-format", "text")
    assert done.returncode == 64
    assert not (repo / "ran").exists()


# -- at a terminal


def at_terminal(repo: Path, answer: str, *arguments: str) -> tuple[int, str]:
    """Runs `ralph` on a terminal and types one answer when it asks."""
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "ralph", *arguments], cwd=repo, stdin=child, stdout=child, stderr=child
    )
    os.close(child)
    output, answered, end = b"", False, time.monotonic() + 40
    try:
        while time.monotonic() < end:
            if not select.select([parent], [], [], 1.0)[0]:
                continue
            try:
                chunk = os.read(parent, 65536)
            except OSError:
                break
            if not chunk:
                break
            output += chunk
            if not answered and b"[y/N]" in output:
                os.write(parent, answer.encode())
                answered = True
        return process.wait(10), output.decode()
    finally:
        process.kill()
        process.wait()
        os.close(parent)


def test_at_a_terminal_ralph_asks_and_remembers_the_answer(ralph: Ralph, repo: Path) -> None:
    (repo / "ralph.yml").write_text(AGENT)
    code, output = at_terminal(repo, "\n", "run", "--ui", "plain")
    assert (code, (repo / "ran").exists()) == (64, False), output
    assert "touch ran" in output
    code, output = at_terminal(repo, "y\n", "run", "--ui", "plain")
    assert (code, (repo / "ran").exists()) == (0, True), output
    assert ralph("run", "--ui", "quiet").returncode == 0
