"""`ralph doctor`, with small programs in PATH instead of agents."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ralph.system import cgroup

if TYPE_CHECKING:
    from collections.abc import Callable

    Ralph = Callable[..., subprocess.CompletedProcess[str]]

CODEX_OUTPUT = """
echo '{"type":"thread.started","thread_id":"th-1"}'
echo '{"type":"item.completed","item":{"id":"i0","type":"agent_message","text":"ready"}}'
echo '{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":2,"output_tokens":3}}'
"""


@pytest.fixture
def tools(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory at the front of a PATH without agents; the environment has no logins."""
    folder = tmp_path_factory.mktemp("tools")
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_TOKEN")):
            monkeypatch.delenv(name)
    return folder


def install(folder: Path, name: str, version: str, body: str = "cat >/dev/null") -> Path:
    path = folder / name
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && {{ echo "{version}"; exit; }}\n{body}\n')
    path.chmod(0o755)
    return path


def own(name: str, text: str) -> Path:
    path = Path(os.environ["HOME"]) / ".config" / "ralph" / "agents" / f"{name}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def report(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def agent(found: dict[str, Any], name: str) -> dict[str, Any]:
    (one,) = [a for a in found["agents"] if a["name"] == name]
    return dict(one)


def check(found: dict[str, Any], name: str) -> dict[str, Any]:
    (one,) = [c for c in found["checks"] if c["name"] == name]
    return dict(one)


# -- agents


def test_another_conventions_files_are_named_and_trust_is_not_called_ok_without_reading_them(
    ralph: Ralph, repo: Path
) -> None:
    (repo / ".ralphrc").write_text("PROJECT_NAME=x\n")
    assert "driver convention: found .ralphrc" in ralph("doctor").stdout
    (repo / ".ralphrc").unlink()
    (repo / "agents").mkdir()
    (repo / "agents" / "a.sh").write_text("")
    (repo / "config").write_text("AGENT=a\n")
    rows = [line.split() for line in ralph("doctor", env={"RALPH_TRUST": ""}).stdout.splitlines()]
    (trust,) = [row for row in rows if row[1:2] == ["trust"]]
    assert trust[0] == "warning"


def test_without_an_agent_no_run_can_start_and_missing_agents_share_a_line(ralph: Ralph, tools: Path) -> None:
    done = ralph("doctor")
    assert done.returncode == 1
    (line,) = [x for x in done.stdout.splitlines() if "not found:" in x]
    assert "claude, " in line
    assert "codex" in line
    assert "A run cannot start:\n  no agent was found in PATH" in done.stdout
    assert len(done.stdout.splitlines()) < 25


def test_the_argv_is_the_same_as_in_a_run(ralph: Ralph, tools: Path) -> None:
    install(tools, "codex", "codex-cli 0.166.3", f'printf "%s\\n" "$@" > {tools}/args; cat >/dev/null')
    install(tools, "cursor-agent", "2025.1.1", f'printf "%s\\n" "$@" > {tools}/args2; cat >/dev/null')
    found = report(ralph("doctor", "--json"))
    ralph("run", "1", "--agent", "codex", "-p", "PROMPT")
    assert (tools / "args").read_text().splitlines() == agent(found, "codex")["argv"][1:]
    assert agent(found, "codex")["argv"][0] == str(tools / "codex")
    assert agent(found, "codex")["prompt"] == "on stdin"
    ralph("run", "1", "--agent", "cursor", "-p", "PROMPT")
    assert (tools / "args2").read_text().splitlines() == agent(found, "cursor")["argv"][1:]
    assert agent(found, "cursor")["prompt"] == "as one argument"


@pytest.mark.parametrize(
    ("version", "version_status", "shown"),
    [
        ("0.166.9", "tested", "0.166.9, tested"),
        ("0.999.0", "newer", "newer than the tested versions (0.50.0 … 0.166.0)"),
        ("0.90.0", "between", "between tested versions"),
        ("0.20.0", "too_old", "too old: 0.50 or later is needed"),
    ],
)
def test_a_version_is_compared_with_the_tested_ones(
    ralph: Ralph, tools: Path, version: str, version_status: str, shown: str
) -> None:
    install(tools, "codex", f"codex-cli {version}")
    assert agent(report(ralph("doctor", "--json")), "codex")["version_status"] == version_status
    done = ralph("doctor")
    assert shown in done.stdout
    assert done.returncode == 0


def test_a_version_below_the_minimum_is_only_a_warning(ralph: Ralph, tools: Path) -> None:
    install(tools, "codex", "codex-cli 0.20.0", f"cat >/dev/null\n{CODEX_OUTPUT.replace('ready', 'LOOP_COMPLETE')}")
    done = ralph("run", "1", "--agent", "codex", "-p", "x")
    assert done.returncode == 0, done
    assert "0.20.0 is older than 0.50" in done.stdout
    install(tools, "codex", "codex-cli 0.50.0")
    assert "older than" not in ralph("run", "1", "--agent", "codex", "-p", "x").stdout


def test_logins_are_shown_by_name_only(ralph: Ralph, tools: Path) -> None:
    install(tools, "codex", "codex-cli 0.166.0")
    install(tools, "cursor-agent", "1.0")
    found = report(ralph("doctor", "--json"))
    assert agent(found, "codex")["login"]["state"] == "missing"
    assert agent(found, "cursor")["login"]["state"] == "unknown"
    assert "Its login seems to be missing" in ralph("doctor").stdout
    done = ralph("doctor", env={"OPENAI_API_KEY": "s3cr3t"})
    assert "login         known: OPENAI_API_KEY is set" in done.stdout
    assert "s3cr3t" not in done.stdout + ralph("doctor", "--json", env={"OPENAI_API_KEY": "s3cr3t"}).stdout


def test_the_agent_that_a_run_would_use_is_marked(ralph: Ralph, tools: Path, repo: Path) -> None:
    install(tools, "codex", "codex-cli 0.166.0")
    install(tools, "amp", "0.0.1790142911")
    found = report(ralph("doctor", "--json"))
    assert (found["would_use"], agent(found, "codex")["chosen"], agent(found, "amp")["chosen"]) == (
        "codex",
        True,
        False,
    )
    (repo / "ralph.yml").write_text("agent: amp\n")
    assert report(ralph("doctor", "--json"))["would_use"] == "amp"
    (repo / "ralph.yml").write_text("agent: gemini\n")
    done = ralph("doctor")
    assert done.returncode == 1
    assert "agent 'gemini' (Gemini CLI) was asked for" in done.stdout
    assert "npm install -g @google/gemini-cli" in done.stdout


def test_the_users_own_command_is_an_agent_too(ralph: Ralph, tools: Path, repo: Path) -> None:
    (repo / "ralph.yml").write_text("agent_cmd: cat {prompt}\n")
    done = ralph("doctor", "--json")
    assert done.returncode == 0
    found = report(done)
    assert found["would_use"] == "custom"
    assert agent(found, "custom")["argv"][-1] == "cat PROMPT_FILE"


def test_an_agent_that_prints_no_version_is_reported(ralph: Ralph, tools: Path) -> None:
    path = install(tools, "codex", "x")
    path.write_text("#!/bin/sh\nexit 3\n")
    done = ralph("doctor")
    assert "codex (OpenAI Codex) does not print its version" in done.stdout
    assert done.returncode == 1


# -- files of the user and of the project

BOLT = """
name = "bolt"
title = "Bolt"
commands = ["bolt"]
notes = ["It is quick."]
[version]
tested = ["1.4.2"]
[[invocation]]
args = ["run"]
"""


def test_the_users_own_agent_is_shown_with_its_file(ralph: Ralph, tools: Path) -> None:
    path = own("bolt", BOLT)
    install(tools, "bolt", "bolt 1.4.3")
    done = ralph("doctor")
    assert "bolt (Bolt) 1.4.3, tested" in done.stdout
    assert f"defined in    {path}\n" in done.stdout
    assert "note          It is quick." in done.stdout
    assert f"bolt is your own agent: {path}\n" in ralph("agents").stdout


def test_an_agent_that_replaces_a_built_in_one_is_marked(ralph: Ralph, tools: Path) -> None:
    path = own("mine", BOLT.replace("bolt", "codex", 1))
    install(tools, "bolt", "bolt 1.4.3")
    assert f"{path} (replaces the built-in one)" in ralph("doctor").stdout
    assert f"codex is your own agent: {path} (replaces the built-in one)" in ralph("agents").stdout
    rows = [json.loads(line) for line in ralph("agents", "--json").stdout.splitlines()]
    assert [(r["file"], r["replaces"]) for r in rows if r["name"] == "codex"] == [(str(path), True)]
    assert [(r["file"], r["replaces"]) for r in rows if r["name"] == "claude"] == [(None, False)]


def test_a_broken_agent_file_is_a_warning_and_other_agents_run(ralph: Ralph, tools: Path) -> None:
    path = own("bolt", BOLT.replace("args", "arg").replace("title", "titel"))
    install(tools, "codex", "codex-cli 0.166.0", f"cat >/dev/null\n{CODEX_OUTPUT.replace('ready', 'LOOP_COMPLETE')}")
    found = check(report(ralph("doctor", "--json")), "own agents")
    assert found["state"] == "warning"
    for part in (str(path), "'titel' (did you mean 'title'?)", "'title' is missing", "did you mean 'args'?"):
        assert part in found["text"]
    assert str(path) in ralph("agents").stderr
    done = ralph("run", "1", "-p", "x")
    assert done.returncode == 0
    assert "warning: this agent is ignored" in done.stdout
    done = ralph("run", "1", "-p", "x", "--agent", "bolt")
    assert done.returncode == 64
    assert "'titel'" in done.stderr


def test_the_projects_agents_are_listed_and_not_used_without_approval(ralph: Ralph, tools: Path, repo: Path) -> None:
    (repo / ".ralph" / "agents").mkdir(parents=True)
    (repo / ".ralph" / "agents" / "bolt.toml").write_text(BOLT)
    install(tools, "bolt", "bolt 1.4.3", f"touch {tools}/started")
    untrusted = {"RALPH_TRUST": ""}
    found = check(report(ralph("doctor", "--json", env=untrusted)), "trust")
    assert found["state"] == "warning"
    assert ".ralph/agents/bolt.toml" in found["text"]
    done = ralph("run", "1", "-p", "x", "--agent", "bolt", env=untrusted)
    assert done.returncode == 64
    assert ".ralph/agents/bolt.toml" in done.stderr
    assert "ralph trust" in done.stderr
    assert not (tools / "started").exists()


# -- the surroundings


def test_the_surroundings_are_reported(ralph: Ralph, tools: Path, repo: Path) -> None:
    found = report(ralph("doctor", "--json", env={"TERM": "xterm-kitty"}))
    assert check(found, "git")["facts"]["repository"] == str(repo)
    assert check(found, "terminal")["facts"]["term"] == "xterm-kitty"
    assert check(found, "terminal")["facts"]["tty"] == {"stdin": False, "stdout": False, "stderr": False}
    assert check(found, "directory")["facts"] == {"path": str(repo), "writable": True}
    assert check(found, "disk")["facts"]["free_bytes"] > 0
    assert check(found, "bash")["facts"]["path"].endswith("/bash")


def test_no_repository_is_a_warning(ralph: Ralph, tools: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    done = ralph("doctor", "--json", cwd=tmp_path_factory.mktemp("bare"))
    assert check(report(done), "git")["state"] == "warning"
    assert check(report(ralph("doctor", "--json", env={"PATH": str(tools)})), "git")["facts"]["version"] is None


def test_a_wrong_configuration_is_a_problem_and_the_rest_is_still_reported(
    ralph: Ralph, tools: Path, repo: Path
) -> None:
    install(tools, "codex", "codex-cli 0.166.0")
    (repo / "ralph.yml").write_text("max_cost: much\nagent: codex\n")
    done = ralph("doctor")
    assert done.returncode == 1
    assert "problem  config      ralph.yml:1: max_cost" in done.stdout
    assert "codex (OpenAI Codex) 0.166.0" in done.stdout
    (repo / "ralph.yml").write_text("agnt: codex\n")
    done = ralph("doctor")
    assert done.returncode == 0
    assert "unknown key 'agnt'" in done.stdout


def test_another_run_is_a_problem(ralph: Ralph, tools: Path, repo: Path) -> None:
    install(tools, "codex", "codex-cli 0.166.0")
    (repo / ".ralph").mkdir()
    with (repo / ".ralph" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("run abc, process 1\n")
        lock.flush()
        done = ralph("doctor")
        assert done.returncode == 1
        assert "run abc, process 1" in done.stdout
    assert ralph("doctor").returncode == 0


def test_a_state_folder_that_is_a_file_is_a_problem(ralph: Ralph, tools: Path, repo: Path) -> None:
    install(tools, "codex", "codex-cli 0.166.0")
    (repo / ".ralph").write_text("")
    done = ralph("doctor")
    assert done.returncode == 1
    assert f"{repo}/.ralph is not writable" in done.stdout


def test_prices_are_checked(ralph: Ralph, tools: Path, repo: Path) -> None:
    install(tools, "codex", "codex-cli 0.166.0")
    path = Path(os.environ["HOME"]) / ".config" / "ralph" / "prices.toml"
    path.parent.mkdir(parents=True)
    path.write_text('["gpt-*"]\ninput = 1\noutput = 2\n')
    facts = check(report(ralph("doctor", "--json")), "prices")["facts"]
    assert (facts["file"], facts["models"]) == (str(path), 1)
    path.write_text('["gpt-*"]\ninput = 1\n')
    done = ralph("doctor")
    assert done.returncode == 1
    assert "output' is missing" in done.stdout


def test_wrong_usage(ralph: Ralph, tools: Path) -> None:
    assert ralph("doctor", "--nonsense").returncode == 64
    assert ralph("doctor", "--cwd", "/nonexistent").returncode == 64
    done = ralph("doctor", "--live", "cdex")
    assert done.returncode == 64
    assert "did you mean 'codex'" in done.stderr


def test_doctor_writes_nothing(ralph: Ralph, tools: Path, repo: Path) -> None:
    install(tools, "codex", "codex-cli 0.166.0", CODEX_OUTPUT)
    before = sorted(repo.iterdir())
    ralph("doctor", "--live")
    assert sorted(repo.iterdir()) == before
    assert not (Path(os.environ["HOME"]) / ".config").exists()


# -- one real prompt


def test_live_starts_the_agent_as_a_run_would(ralph: Ralph, tools: Path, repo: Path) -> None:
    install(
        tools,
        "codex",
        "codex-cli 0.166.0",
        f"cat > {tools}/prompt; git rev-parse --git-dir > {tools}/git\n{CODEX_OUTPUT}",
    )
    (repo / "ralph.yml").write_text("verify: [touch verified]\nmax_iterations: 50\n")
    done = ralph("doctor", "--live", "codex", "--json")
    assert done.returncode == 0, done
    answer = report(done)["live"]
    assert (answer["agent"], answer["outcome"], answer["text"], answer["session_id"]) == (
        "codex",
        "ok",
        "ready",
        "th-1",
    )
    counts = ("prompt_tokens", "cached_tokens", "completion_tokens")
    assert [answer["usage"][name] for name in counts] == [10, 2, 3]
    assert answer["missing"] == []
    assert (tools / "prompt").read_text().strip() == "Reply with the single word: ready"
    assert (tools / "git").read_text().strip() == ".git"
    assert not (repo / ".ralph").exists()
    assert not (repo / "verified").exists()


def test_live_without_a_name_uses_the_agent_of_a_run(ralph: Ralph, tools: Path, repo: Path) -> None:
    (repo / "ralph.yml").write_text("agent_cmd: cat >/dev/null; echo ready\n")
    done = ralph("doctor", "--live")
    assert done.returncode == 0, done
    assert "custom works." in done.stdout


def test_live_with_a_name_checks_that_agent(ralph: Ralph, tools: Path, repo: Path) -> None:
    (repo / "ralph.yml").write_text("agent: gemini\n")
    install(tools, "codex", "codex-cli 0.166.0", f"cat >/dev/null\n{CODEX_OUTPUT}")
    assert ralph("doctor").returncode == 1
    assert ralph("doctor", "--live", "codex").returncode == 0
    (repo / ".ralph").write_text("in the way")
    assert ralph("doctor", "--live", "codex").returncode == 1


def test_live_lists_what_is_missing_from_the_answer(ralph: Ralph, tools: Path) -> None:
    text_only = CODEX_OUTPUT.splitlines()[2]
    install(tools, "codex", "codex-cli 0.166.0", f"cat >/dev/null\n{text_only}")
    done = ralph("doctor", "--live")
    assert "missing in its output, which usually has it: session, usage" in done.stdout


def test_live_shows_the_outcome_and_the_output_of_a_failure(ralph: Ralph, tools: Path) -> None:
    install(tools, "codex", "codex-cli 0.166.0", "cat >/dev/null; echo 'key is bad' >&2; exit 1")
    done = ralph("doctor", "--live", "codex")
    assert done.returncode == 1
    assert "outcome     failed" in done.stdout
    assert "key is bad" in done.stdout
    assert "codex did not give a usable answer." in done.stdout


def test_live_with_a_missing_agent_sends_no_prompt(ralph: Ralph, tools: Path) -> None:
    done = ralph("doctor", "--live", "gemini")
    assert done.returncode == 1
    assert "No prompt was sent: agent 'gemini' (Gemini CLI) was asked for, but 'gemini' is not in PATH" in done.stdout
    done = ralph("doctor", "--live")
    assert done.returncode == 1
    assert "No prompt was sent: a run cannot start" in done.stdout


def test_live_without_an_answer_ends_at_its_deadline(tools: Path, repo: Path) -> None:
    """The deadline is minutes for users; here a second."""
    install(tools, "codex", "codex-cli 0.166.0", "exec sleep 60")
    code = (
        "from ralph.cli.execute import execute\n"
        "from ralph.doctor.live import ask\n"
        "from ralph.planning.settle import settle\n"
        "from ralph.trust.approval import Trust\n"
        "print(ask(settle({}, None, Trust()), 'codex', execute, deadline=1.0).outcome)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=repo, capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.strip().startswith("timeout_")


def test_whether_agents_run_in_a_cgroup_is_shown(ralph: Ralph) -> None:
    group = cgroup.create()
    if group is not None:
        cgroup.remove(group)
    found = check(report(ralph("doctor", "--json")), "processes")
    assert (found["state"], found["facts"]) == ("ok", {"cgroup": group is not None})
    assert ("a cgroup of its own" in found["text"]) is (group is not None)
