"""`--help`, and what a bug of ours looks like to a user."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ralph.config.settings import OPTIONS, default

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Ralph = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize("columns", ["80", "200"])
def test_help_fits_80_columns_and_is_grouped(ralph: Ralph, columns: str) -> None:
    text = ralph("run", "--help", env={"COLUMNS": columns}).stdout
    assert max(len(line) for line in text.splitlines()) <= 80
    headings = re.findall(r"^(\w[\w ]*):$", text, re.MULTILINE)
    assert headings == ["Agent", "Prompt", "Completion", "Limits", "Secrets", "Screen", "Other options"]
    groups = dict(zip(headings, re.split(r"^\w[\w ]*:$", text, flags=re.MULTILINE)[1:], strict=True))
    for option in OPTIONS:
        for flag in option.flags:
            assert re.search(rf"(^|\s){flag}[ ,\n]", groups[option.group]), flag


def test_every_flag_with_a_default_names_it(ralph: Ralph) -> None:
    text = " ".join(ralph("run", "--help").stdout.split())
    for option in OPTIONS:
        value = default(option.name)
        if option.flags and value not in (None, ()) and not isinstance(value, bool):
            assert "[default:" in option.help, option.name
            assert option.help in text


@pytest.mark.parametrize(
    "command",
    [
        "run",
        "demo",
        "agents",
        "doctor",
        "init",
        "config",
        "trust",
        "runs",
        "show",
        "tail",
        "stop",
        "pause",
        "resume",
        "steer",
        "replay",
    ],
)
def test_every_command_has_help(ralph: Ralph, command: str) -> None:
    result = ralph(command, "-h")
    assert result.returncode == 0, result
    assert result.stdout.startswith(f"Usage: ralph {command}")


def test_no_command_is_help(ralph: Ralph) -> None:
    result = ralph()
    assert result.returncode == 0
    assert "Commands:" in result.stdout


BUG = """
import sys
import ralph.cli.init
def broken(_):
    raise KeyError("oh no")
ralph.cli.init.working_directory = broken
sys.argv = ["ralph", "init", "--secret-not-told"][:2]
from ralph.cli import main
main()
"""


def crash(folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BUG],
        cwd=folder,
        env=os.environ | env,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_a_bug_of_ours_is_a_sentence_and_a_file(tmp_path: Path) -> None:
    (tmp_path / ".ralph").mkdir()
    done = crash(tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "bug in ralph" in done.stderr
    (file,) = (tmp_path / ".ralph").iterdir()
    assert str(file.relative_to(tmp_path)) in done.stderr
    assert "KeyError: 'oh no'" in file.read_text()


def test_without_a_journal_the_details_go_to_the_temporary_folder(tmp_path: Path) -> None:
    done = crash(tmp_path, TMPDIR=str(tmp_path))
    (file,) = tmp_path.glob("ralph-crash-*.txt")
    assert str(file) in done.stderr


def test_who_wants_the_traceback_gets_it(tmp_path: Path) -> None:
    done = crash(tmp_path, RALPH_DEBUG="1", TMPDIR=str(tmp_path))
    assert "Traceback" in done.stderr
    assert not list(tmp_path.iterdir())
