"""Which environment variables reach an agent and its checks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Ralph = Callable[..., subprocess.CompletedProcess[str]]

DONE = "<promise>COMPLETE</promise>"
AGENT = f"env > agent.env; echo '{DONE}'"
CHECK = "env > check.env"
ENV = {"AWS_REGION": "mars-north-1", "AWS_PROFILE": "nobody", "GOOD": "yes", "HORSE_TOKEN": "c0rrect-h0rse"}


def seen(path: Path) -> set[str]:
    return {line.partition("=")[0] for line in path.read_text().splitlines()}


@pytest.mark.parametrize("how", ["flag", "flags", "environment", "file"])
def test_denied_variables_reach_neither_agent_nor_check(ralph: Ralph, repo: Path, how: str) -> None:
    flags: list[str] = []
    env = dict(ENV)
    match how:
        case "flag":
            flags = ["--env-deny", "AWS_*,HORSE_TOKEN"]
        case "flags":
            flags = ["--env-deny", "AWS_*", "--env-deny", "HORSE_TOKEN"]
        case "environment":
            env["RALPH_ENV_DENY"] = "AWS_*, HORSE_TOKEN"
        case "file":
            (repo / "ralph.yml").write_text("env_deny:\n  - AWS_*\n  - HORSE_TOKEN\n")
    done = ralph("run", "1", "--agent-cmd", AGENT, "--verify", CHECK, *flags, env=env)
    assert done.returncode == 0, done
    for name in ("agent.env", "check.env"):
        assert "GOOD" in seen(repo / name)
        assert seen(repo / name) & {"AWS_REGION", "AWS_PROFILE", "HORSE_TOKEN"} == set()
    dry = ralph("run", "1", "--agent-cmd", AGENT, *flags, "--dry-run", env=env).stdout
    (row,) = [line for line in dry.splitlines() if line.startswith("  withheld")]
    assert "AWS_PROFILE, AWS_REGION, HORSE_TOKEN" in row


def test_without_a_denial_the_agent_gets_the_whole_environment(ralph: Ralph, repo: Path) -> None:
    assert ralph("run", "1", "--agent-cmd", AGENT, env=ENV).returncode == 0
    assert seen(repo / "agent.env") >= set(ENV)


def test_denied_variables_are_still_masked(ralph: Ralph, repo: Path) -> None:
    """The agent may find the value elsewhere."""
    done = ralph("run", "1", "--agent-cmd", f"echo c0rrect-h0rse; echo '{DONE}'", "--env-deny", "HORSE_TOKEN", env=ENV)
    assert "[masked:HORSE_TOKEN]" in done.stdout
    assert "c0rrect-h0rse" not in done.stdout.replace("echo c0rrect-h0rse", "")


def test_denying_a_login_variable_is_a_warning(ralph: Ralph, repo: Path) -> None:
    program = repo / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nenv > {repo}/version.env\necho '2.1.0 (Claude Code)'\n")
    program.chmod(0o755)
    env = {
        "PATH": f"{program.parent}:/usr/bin:/bin",
        "ANTHROPIC_API_KEY": "sk-ant-not-a-real-one",
        "RALPH_ENV_DENY": "ANTHROPIC_*",
    }
    warning = "RALPH_ENV_DENY withholds ANTHROPIC_API_KEY from Claude Code"
    dry = ralph("run", "1", "--agent", "claude", "--dry-run", env=env)
    assert dry.returncode == 0, dry
    assert f"warning: {warning}" in dry.stdout
    assert "ANTHROPIC_API_KEY" not in seen(repo / "version.env")
    assert warning in ralph("doctor", env=env | {"RALPH_AGENT": "claude"}).stdout


def test_env_files_are_never_loaded(ralph: Ralph, repo: Path) -> None:
    for name in (".env", ".env.local", ".ralph.env", ".agent/.env"):
        path = repo / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("FROM_A_FILE=1\nexport FROM_A_FILE\nRALPH_MAX_ITERATIONS=7\n")
    done = ralph("run", "1", "--agent-cmd", AGENT, "--verify", CHECK)
    assert done.returncode == 0, done
    assert "FROM_A_FILE" not in seen(repo / "agent.env") | seen(repo / "check.env")
    assert re.search(r"max_iterations +100 ", ralph("config").stdout)


def test_what_is_denied_is_not_in_the_environment_of_the_agents_parent(ralph: Ralph, repo: Path) -> None:
    agent = f"tr '\\0' '\\n' < /proc/$PPID/environ > parent.env; echo '{DONE}'"
    assert ralph("run", "1", "--agent-cmd", agent, "--env-deny", "HORSE_TOKEN", env=ENV).returncode == 0
    assert "GOOD" in seen(repo / "parent.env")
    assert "HORSE_TOKEN" not in seen(repo / "parent.env")
