"""`ralph run` as a new user meets it: prompts, agents, directories, and mistakes."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    Ralph = Callable[..., subprocess.CompletedProcess[str]]

DONE = "<promise>COMPLETE</promise>"
SYSTEM = "/usr/bin:/bin"


def explained(result: subprocess.CompletedProcess[str], *parts: str, code: int = 64) -> None:
    """Asserts an error with these parts on stderr, nothing on stdout, and no traceback."""
    assert result.returncode == code, result
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    for part in parts:
        assert part in result.stderr


def program(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def recorded(folder: Path, iteration: int = 1, name: str = "stdout.raw") -> bytes:
    return (folder / ".ralph" / "latest" / "iterations" / f"{iteration:04d}" / name).read_bytes()


# -- the prompt


@pytest.mark.parametrize("how", ["flag", "environment", "file", "custom"])
def test_a_command_may_run_without_a_prompt_if_an_empty_one_is_given(ralph: Ralph, tmp_path: Path, how: str) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    if how == "file":
        (empty / "ralph.yml").write_text(f"agent_cmd: echo '{DONE}'\n")
    if how == "custom":
        (empty / "ralph.yml").write_text(f"agent: custom\ncommand: echo\nargs: ['{DONE}']\nprompt_mode: stdin\n")
    flags = ("--agent-cmd", f"echo '{DONE}'") if how == "flag" else ()
    env = {"AGENT_CMD": f"echo '{DONE}'"} if how == "environment" else {}
    explained(ralph("run", *flags, cwd=empty, env=env), "there is no prompt", "-p ''")
    assert not (empty / ".ralph").exists()
    result = ralph("run", *flags, "-p", "", cwd=empty, env=env)
    assert result.returncode == 0, result
    assert "no prompt:" in result.stdout
    assert "Iterations 1\n" in result.stdout


def test_an_agent_that_ralph_knows_needs_a_prompt_that_says_something(ralph: Ralph) -> None:
    explained(ralph("run", "--agent", "demo", "-p", ""), "the prompt (--prompt) is empty")


@pytest.mark.parametrize("text", ["PROMPT.md", "./README.md", "~/notes.txt"])
def test_a_prompt_that_is_the_name_of_a_file_is_a_warning(ralph: Ralph, text: str) -> None:
    (Path(os.environ["HOME"]) / "notes.txt").write_text("notes")
    result = ralph("run", "1", "--agent-cmd", f"echo '{DONE}'", "-p", text)
    assert result.returncode == 0, result
    assert f"is the text '{text}', not the file of that name; to use the file: -P {text}" in result.stdout
    assert "not the file" not in ralph("run", "1", "--agent-cmd", f"echo '{DONE}'", "-p", "Fix it.").stdout


@pytest.mark.parametrize(
    ("flag", "hint"),
    [
        ("--max-iterations", "'--max-iterations'; the number of iterations is an argument: ralph run 10."),
        ("--root", "'--root'; use --cwd."),
        ("--max-cots", "'--max-cots' (did you mean '--max-cost'?)."),
        ("--wibble", "'--wibble'."),
    ],
)
def test_an_unknown_option_is_explained_without_far_fetched_suggestions(ralph: Ralph, flag: str, hint: str) -> None:
    explained(ralph("run", flag, "3"), f"There is no option {hint}\n")


@pytest.mark.parametrize("config", ["agent: demo\n", "cli:\n  backend: custom\n  command: cat\n"])
def test_a_named_or_custom_agent_needs_a_prompt(ralph: Ralph, tmp_path: Path, config: str) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "ralph.yml").write_text(config)
    explained(ralph("run", cwd=empty), "there is no prompt", "PROMPT.md", "-p", "-P", "ralph init")
    assert not (empty / ".ralph").exists()


def test_an_empty_prompt_is_an_error(ralph: Ralph, repo: Path) -> None:
    explained(ralph("run", "-p", " \n", "--agent-cmd", "cat"), "--prompt", "is empty")
    (repo / "PROMPT.md").write_text("\n\n")
    explained(ralph("run", "--agent-cmd", "cat"), "PROMPT.md", "is empty")


def test_a_prompt_file_that_is_missing_or_not_text_is_an_error(ralph: Ralph, repo: Path) -> None:
    (repo / "folder").mkdir()
    (repo / "binary").write_bytes(b"\x7fELF\0\0\0")
    explained(ralph("run", "-P", "nope.md", "--agent-cmd", "cat"), "nope.md", "does not exist")
    explained(ralph("run", "-P", "folder", "--agent-cmd", "cat"), "folder", "directory")
    explained(ralph("run", "-P", "binary", "--agent-cmd", "cat"), "binary", "not text")
    assert not (repo / ".ralph").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_prompt_is_an_error(ralph: Ralph, repo: Path) -> None:
    (repo / "PROMPT.md").chmod(0)
    explained(ralph("run", "--agent-cmd", "cat"), "PROMPT.md", "Permission denied")


def test_300_kb_reach_the_agent_on_stdin(ralph: Ralph, repo: Path) -> None:
    prompt = ("é" * 99 + "\n") * 1550
    (repo / "PROMPT.md").write_text(prompt)
    ralph("run", "1", "--agent-cmd", "cat", "--ui", "quiet")
    assert len(prompt.encode()) > 300_000
    assert recorded(repo) == prompt.encode()
    assert recorded(repo, name="prompt.md") == prompt.encode()


def test_a_prompt_too_big_for_an_argument_is_an_error_before_the_start(ralph: Ralph, repo: Path) -> None:
    (repo / "ralph.yml").write_text("cli:\n  backend: custom\n  command: echo\n")
    (repo / "PROMPT.md").write_text("x" * 131_072)
    explained(ralph("run", "1"), "131,072 bytes", "prompt_mode: stdin")
    assert not (repo / ".ralph").exists()
    (repo / "PROMPT.md").write_text("x" * 131_071)
    assert ralph("run", "1", "--ui", "quiet").returncode == 2


def test_bytes_that_are_not_utf8_reach_the_agent_unchanged(ralph: Ralph, repo: Path) -> None:
    (repo / "PROMPT.md").write_bytes(b"caf\xe9\n")
    ralph("run", "1", "--agent-cmd", "cat", "--ui", "quiet")
    assert recorded(repo) == b"caf\xe9\n"
    (repo / "ralph.yml").write_text("cli:\n  backend: custom\n  command: printf\n  args: ['%s']\n")
    ralph("run", "1", "--ui", "quiet")
    assert recorded(repo) == b"caf\xe9\n"


def test_a_prompt_that_begins_with_a_dash_is_not_read_as_a_flag(ralph: Ralph, repo: Path) -> None:
    """A Markdown list begins like that; a real parser must read it as the prompt."""
    parser = (
        "import argparse; p = argparse.ArgumentParser(); p.add_argument('prompt'); print(p.parse_args().prompt.strip())"
    )
    (repo / "parse.py").write_text(parser)
    (repo / "ralph.yml").write_text(f"cli:\n  backend: custom\n  command: {sys.executable}\n  args: [parse.py]\n")
    ralph("run", "1", "-p", "- first\n- second", "--ui", "quiet")
    assert recorded(repo) == b"- first\n- second\n"


def test_the_prompt_is_read_again_each_iteration(ralph: Ralph, repo: Path) -> None:
    result = ralph("run", "3", "--agent-cmd", "cat; echo more >> PROMPT.md", "--ui", "quiet")
    assert result.returncode == 2
    assert [recorded(repo, n).count(b"more") for n in (1, 2, 3)] == [0, 1, 2]


def test_a_prompt_that_becomes_unreadable_ends_the_run_with_a_reason(ralph: Ralph) -> None:
    result = ralph("run", "3", "--agent-cmd", "rm -f PROMPT.md; mkdir PROMPT.md; echo hi", "-P", "PROMPT.md")
    assert result.returncode == 1, result
    assert "Failed (exit code 1)" in result.stdout
    assert "PROMPT.md cannot be read" in result.stdout
    assert "failed" in ralph("runs").stdout


def test_a_working_directory_that_is_deleted_ends_the_run_with_a_reason(ralph: Ralph, repo: Path) -> None:
    (repo / "work").mkdir()
    result = ralph("run", "3", "-p", "x", "--cwd", "work", "--agent-cmd", "rm -rf ../work; echo hi")
    assert result.returncode == 1, result
    assert "the working directory is gone" in result.stdout
    assert "Traceback" not in result.stderr


def test_paths_stay_absolute_if_the_users_directory_is_gone(ralph: Ralph, repo: Path) -> None:
    (repo / "work").mkdir()
    result = ralph("run", "3", "-p", "x", "--agent-cmd", "rm -rf ../work; echo hi", cwd=repo / "work")
    assert result.returncode == 1, result
    assert f"--cwd {repo / 'work'}" in result.stdout
    assert f" {str(repo).lstrip('/')}" not in result.stdout


def test_the_next_step_works_from_the_users_directory(ralph: Ralph, repo: Path) -> None:
    (repo / "some where").mkdir()
    result = ralph("run", "1", "-p", "x", "--cwd", "some where", "--agent-cmd", "echo hi")
    (journal,) = [line.split(maxsplit=1)[1] for line in result.stdout.splitlines() if line.startswith("Journal")]
    assert (repo / journal / "run.json").is_file()
    (step,) = [line.split(maxsplit=1)[1] for line in result.stdout.splitlines() if line.startswith("Next")]
    command = shlex.split(step.partition(" shows what")[0])
    assert command[0] == "ralph"
    assert "AI      hi" in ralph(*command[1:]).stdout


def test_a_pipe_is_a_prompt_for_all_iterations(repo: Path) -> None:
    command = f"{shlex.quote(sys.executable)} -m ralph run 2 -P <(echo from a pipe) --agent-cmd cat --ui quiet"
    done = subprocess.run(["bash", "-c", command], cwd=repo, capture_output=True, timeout=30, check=False)
    assert done.returncode == 2, done
    assert recorded(repo, 2) == b"from a pipe\n"


# -- directories


def test_the_agent_works_in_the_current_directory_even_if_ralph_yml_is_above(ralph: Ralph, repo: Path) -> None:
    deep = repo / "src" / "deep"
    deep.mkdir(parents=True)
    (repo / "ralph.yml").write_text(f"agent_cmd: pwd; echo '{DONE}'\nprompt_file: PROMPT.md\n")
    result = ralph("run", cwd=deep)
    assert result.returncode == 0, result
    assert recorded(deep).decode().splitlines()[0] == str(deep)
    assert "from " + str(repo / "PROMPT.md") in result.stdout


@pytest.mark.parametrize("how", ["flag", "variable", "file"])
def test_another_directory_can_be_set(ralph: Ralph, repo: Path, how: str) -> None:
    (repo / "sub").mkdir()
    if how == "file":
        (repo / "ralph.yml").write_text("cwd: sub\n")
    arguments = ["--cwd", "sub"] if how == "flag" else []
    env = {"RALPH_CWD": "sub"} if how == "variable" else {}
    result = ralph("run", "-P", "PROMPT.md", "--agent-cmd", f"pwd; echo '{DONE}'", *arguments, env=env)
    assert result.returncode == 0, result
    assert recorded(repo / "sub").decode().splitlines()[0] == str(repo / "sub")


def test_a_missing_directory_is_an_error(ralph: Ralph, repo: Path) -> None:
    explained(ralph("run", "--cwd", "nowhere", "--agent-cmd", "cat"), "working directory", "nowhere")
    (repo / "ralph.yml").write_text("cwd: gone\n")
    explained(ralph("run", "--agent-cmd", "cat"), "working directory", "gone")


def test_a_current_directory_that_was_deleted_is_an_error(repo: Path) -> None:
    command = f"mkdir gone && cd gone && rmdir ../gone && {shlex.quote(sys.executable)} -m ralph run --agent-cmd cat"
    done = subprocess.run(["bash", "-c", command], cwd=repo, capture_output=True, text=True, timeout=30, check=False)
    explained(done, "the working directory is gone")


def test_a_program_next_to_the_file_is_found_from_anywhere(ralph: Ralph, repo: Path) -> None:
    program(repo / "tool", f"cat; echo; echo '{DONE}'")
    (repo / "ralph.yml").write_text("cli:\n  backend: custom\n  command: ./tool\n  prompt_mode: stdin\n")
    (repo / "sub").mkdir()
    assert ralph("run", "-c", "../ralph.yml", "-p", "x", cwd=repo / "sub").returncode == 0
    assert ralph("run", "-c", "ralph.yml", "--cwd", "sub", "-p", "x").returncode == 0


# -- the agent


def test_without_any_agent_the_error_lists_all_and_how_to_get_them(ralph: Ralph, tmp_path: Path) -> None:
    from ralph.agents import registry

    bare = tmp_path / "bin"
    bare.mkdir()
    result = ralph("run", env={"PATH": str(bare)})
    explained(result, "no agent was found", "--agent-cmd", "ralph demo")
    for spec in registry.all_specs():
        if spec.detect is not None:
            assert any(
                line.split()[0] == spec.name and spec.link in line
                for line in result.stderr.splitlines()
                if line.strip()
            )


def test_no_prompt_and_no_agent_are_reported_together(ralph: Ralph, repo: Path) -> None:
    (repo / "PROMPT.md").unlink()
    explained(ralph("run", env={"PATH": str(repo)}), "there is no prompt", "no agent was found")


def test_an_unknown_agent_is_an_error_with_the_nearest_name(ralph: Ralph) -> None:
    explained(ralph("run", "--agent", "clade"), "'clade'", "'claude'", "codex", "custom")
    explained(ralph("run", env={"RALPH_AGENT": "gemni"}), "'gemini'")


def test_a_missing_agent_is_an_error_with_how_to_get_it(ralph: Ralph, repo: Path) -> None:
    explained(
        ralph("run", "--agent", "gemini", env={"PATH": str(repo)}),
        "gemini",
        "not in PATH",
        "npm install -g @google/gemini-cli",
    )


def test_the_first_enabled_agent_in_path_is_used(ralph: Ralph, repo: Path) -> None:
    tools = repo / "tools"
    tools.mkdir()
    for name in ("claude", "codex"):
        program(tools / name, "[ $1 = --version ] && echo 1.2.3 || cat >/dev/null")
    env = {"PATH": f"{tools}:{SYSTEM}"}
    assert f"argv          {tools}/claude" in ralph("run", "--dry-run", env=env).stdout
    (repo / "ralph.yml").write_text("adapters:\n  claude:\n    enabled: false\n")
    assert f"argv          {tools}/codex" in ralph("run", "--dry-run", env=env).stdout
    (repo / "ralph.yml").write_text("agent_priority: [codex, claude]\n")
    assert f"argv          {tools}/codex" in ralph("run", "--dry-run", env=env).stdout
    (repo / "ralph.yml").write_text("cli:\n  backend: codex\n")
    assert f"argv          {tools}/codex" in ralph("run", "--dry-run", env=env).stdout
    program(tools / "claude", "exit 1")
    (repo / "ralph.yml").unlink()
    assert f"argv          {tools}/codex" in ralph("run", "--dry-run", env=env).stdout


def test_a_custom_agent_without_a_command_is_an_error(ralph: Ralph, repo: Path) -> None:
    (repo / "ralph.yml").write_text("cli:\n  backend: custom\n")
    explained(ralph("run"), "custom", "command", "ralph.yml:2")
    (repo / "ralph.yml").write_text("cli:\n  backend: custom\n  command: ./nope\n")
    explained(ralph("run"), "./nope", "ralph.yml:3", "not found")
    (repo / "nope").write_text("text")
    explained(ralph("run"), "./nope", "not executable")


@pytest.mark.parametrize(
    ("more", "seen"),
    [
        ("prompt_mode: stdin", ["--headless", "--json"]),
        ("prompt_mode: arg\n  prompt_flag: -p", ["--headless", "--json", "-p", "test"]),
        ("prompt_mode: arg", ["--headless", "--json", "test"]),
    ],
)
def test_a_custom_agent_gets_its_arguments_and_the_prompt(ralph: Ralph, repo: Path, more: str, seen: list[str]) -> None:
    program(repo / "my-ai", f'for a in "$@"; do echo "arg:$a"; done; sed s/^/stdin:/; echo; echo "{DONE}"')
    (repo / "ralph.yml").write_text(
        f'cli:\n  backend: custom\n  command: ./my-ai\n  args: ["--headless", "--json"]\n  {more}\n'
    )
    assert ralph("run", "-p", "test").returncode == 0
    lines = recorded(repo).decode().splitlines()
    assert [line[4:] for line in lines if line.startswith("arg:")] == seen
    assert [line for line in lines if line.startswith("stdin:")] == (["stdin:test"] if "stdin" in more else [])


def test_a_known_agent_can_use_another_binary(ralph: Ralph, repo: Path) -> None:
    program(repo / "my-claude", "[ $1 = --version ] && echo 2.0.1 && exit; cat > /dev/null")
    (repo / "ralph.yml").write_text("cli:\n  backend: claude\n  command: ./my-claude\n")
    result = ralph("run", "--dry-run")
    assert f"argv          {repo}/my-claude" in result.stdout
    assert "claude (Claude Code 2.0.1)" in result.stdout


def test_the_timeout_of_one_agent_ends_its_iteration(ralph: Ralph, repo: Path) -> None:
    program(repo / "slow", "[ $1 = --version ] && echo 2.0.1 && exit; echo begun; sleep 60")
    (repo / "ralph.yml").write_text(
        "cli:\n  backend: claude\n  command: ./slow\n  transcript: plain\nadapters:\n  claude:\n    timeout: 1\n"
    )
    result = ralph("run", "1", timeout=30)
    assert "timeout_idle" in result.stdout, result


def test_a_model_that_cannot_be_passed_on_is_reported(ralph: Ralph) -> None:
    explained(ralph("run", "--agent-cmd", "cat", "--model", "x"), "--model")
    result = ralph("run", "1", "--agent-cmd", "cat", env={"RALPH_MODEL": "x"})
    assert "model 'x' (RALPH_MODEL) is not used" in result.stdout


def test_an_empty_command_is_an_error(ralph: Ralph) -> None:
    explained(ralph("run", "--agent-cmd", " "), "--agent-cmd is empty")


def test_an_unknown_transcript_is_an_error_with_the_nearest_name(ralph: Ralph) -> None:
    explained(ralph("run", "--agent-cmd", "cat", "--transcript", "rtf"), "'rtf'", "rtf1", "plain")
    explained(ralph("run", "--agent-cmd", "cat", env={"RALPH_TRANSCRIPT": "plane"}), "'plain'")


# -- numbers and flags


@pytest.mark.parametrize(
    "arguments", [["--", "-3"], ["--max-cost=-1"], ["--max-tokens=-1"], ["--max-failures=-1"], ["--idle-timeout=-1"]]
)
def test_negative_limits_are_errors(ralph: Ralph, arguments: list[str]) -> None:
    explained(ralph("run", "--agent-cmd", "cat", *arguments), "expected", "0 or more")


def test_all_wrong_flags_are_reported_at_once(ralph: Ralph) -> None:
    result = ralph("run", "--max-cost", "abc", "--max-tokens", "x", "--idle-timeout", "soon", "--ui", "fancy", "three")
    explained(result, "--max-cost:", "--max-tokens:", "--idle-timeout:", "--ui:", "MAX_ITERATIONS:")


def test_an_unknown_flag_or_command_is_an_error(ralph: Ralph) -> None:
    explained(ralph("run", "--agnt", "x"), "--agnt")
    explained(ralph("rum"), "'rum'", "'run'")


def test_a_flag_can_switch_off_what_the_file_switches_on(ralph: Ralph, repo: Path) -> None:
    (repo / "ralph.yml").write_text("interactive: true\npty: true\n")
    explained(ralph("run", "--agent-cmd", "cat"), "--interactive needs a terminal")
    assert not (repo / ".ralph").exists()
    result = ralph("run", "1", "--agent-cmd", "cat", "--no-interactive", "--no-pty")
    assert result.returncode == 2


def test_a_second_run_in_the_same_directory_is_an_error(ralph: Ralph, repo: Path) -> None:
    inner = f"{shlex.quote(sys.executable)} -m ralph run 1 --agent-cmd cat; echo code=$?"
    result = ralph("run", "1", "--agent-cmd", inner)
    assert "already active" in result.stdout
    assert "code=64" in result.stdout


def test_warnings_about_the_file_are_shown(ralph: Ralph, repo: Path) -> None:
    (repo / "ralph.yml").write_text("retry_dely: 3\nhats: {}\n")
    result = ralph("run", "1", "--agent-cmd", "cat")
    assert "did you mean 'retry_delay'" in result.stdout
    assert "not acted on yet: hats" in result.stdout
