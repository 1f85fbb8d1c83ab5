"""`--agent-cmd` and AGENT_CMD: common idioms, end to end."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Ralph = Callable[..., subprocess.CompletedProcess[str]]

DONE = "<promise>COMPLETE</promise>"


def stdout(folder: Path, iteration: int = 1) -> str:
    return (folder / ".ralph" / "latest" / "iterations" / f"{iteration:04d}" / "stdout.raw").read_text()


def test_claude_print_reads_the_prompt_on_stdin(
    ralph: Ralph, repo: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tools = tmp_path_factory.mktemp("bin")
    claude = tools / "claude"
    claude.write_text(f'#!/bin/bash\n[ "$*" = --print ] || exit 9\necho "heard: $(cat)"\necho "{DONE}"\n')
    claude.chmod(0o755)
    # a login shell may reset PATH, so the program is added to it there
    done = ralph("run", "3", "--agent-cmd", f"PATH={shlex.quote(str(tools))}:$PATH; claude --print")
    assert done.returncode == 0, done
    assert stdout(repo) == f"heard: Do the work.\n{DONE}\n"


def test_cat_prints_the_prompt_and_does_not_complete(ralph: Ralph, repo: Path) -> None:
    done = ralph("run", "2", "--agent-cmd", "cat")
    assert done.returncode == 2, done
    assert stdout(repo) == stdout(repo, 2) == (repo / "PROMPT.md").read_text()


def test_printf_completes_in_one_iteration_with_an_empty_prompt(
    ralph: Ralph, tmp_path_factory: pytest.TempPathFactory
) -> None:
    empty = tmp_path_factory.mktemp("empty")
    done = ralph("run", "-p", "", "--agent-cmd", rf"printf 'hello\n{DONE}\n'", cwd=empty)
    assert done.returncode == 0, done
    assert "Iterations 1\n" in done.stdout
    assert stdout(empty) == f"hello\n{DONE}\n"


@pytest.mark.parametrize("name", ["plain", "with space", "it's", 'a"b', "$HOME `id`", "a;b&c"])
def test_the_prompt_file_is_quoted_for_the_shell(ralph: Ralph, repo: Path, name: str) -> None:
    folder = repo / name
    folder.mkdir()
    command = 'wc -l < {prompt}; printf "%s" {prompt} > path; cat {prompt}; echo; echo "' + DONE + '"'
    done = ralph("run", "1", "-p", "one line\nand 'another' \"$x\"\n", "--agent-cmd", command, cwd=folder)
    assert done.returncode == 0, done
    assert (folder / "path").read_text().startswith(str(folder / ".ralph" / "runs"))
    assert "and 'another' \"$x\"" in stdout(folder)


def test_the_prompt_is_passed_on_stdin_unless_the_command_has_a_placeholder(ralph: Ralph, repo: Path) -> None:
    ralph("run", "1", "-p", "words", "--agent-cmd", "echo got: $(cat); true {prompt}")
    assert stdout(repo) == "got:\n"
    ralph("run", "1", "-p", "words", "--agent-cmd", "echo got: $(cat)")
    assert stdout(repo) == "got: words\n"


def test_the_environment_overrides_the_file_and_a_flag_overrides_both(ralph: Ralph, repo: Path) -> None:
    environment = {"AGENT_CMD": f"echo env; echo '{DONE}'"}
    assert ralph("run", env=environment).returncode == 0
    assert stdout(repo) == f"env\n{DONE}\n"
    assert ralph("run", "--agent-cmd", f"echo flag; echo '{DONE}'", env=environment).returncode == 0
    assert stdout(repo) == f"flag\n{DONE}\n"
    (repo / "ralph.yml").write_text(f"agent_cmd: echo file; echo '{DONE}'\n")
    ralph("run", env=environment)
    assert stdout(repo) == f"env\n{DONE}\n"


def test_the_command_runs_in_a_bash_login_shell(ralph: Ralph, repo: Path) -> None:
    ralph("run", "1", "--agent-cmd", 'shopt -q login_shell && echo "login ${BASH_VERSION:+bash}"; [[ a == a ]]')
    assert stdout(repo) == "login bash\n"


def test_a_command_that_fails_is_a_failed_iteration(ralph: Ralph, repo: Path) -> None:
    done = ralph("run", "1", "--agent-cmd", f"echo '{DONE}'; exit 3")
    assert done.returncode != 0
    assert "failed" in done.stdout
