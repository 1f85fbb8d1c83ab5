"""`--help`, and what users see of a bug in ralph."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ralph import __version__
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


def test_every_flag_with_a_default_shows_it(ralph: Ralph) -> None:
    text = " ".join(ralph("run", "--help").stdout.split())
    for option in OPTIONS:
        value = default(option.name)
        if option.flags and value not in (None, ()) and not isinstance(value, bool):
            assert "[default:" in option.help, option.name
            assert option.help in text


COMMANDS = (
    "run",
    "demo",
    "init",
    "config",
    "trust",
    "agents",
    "doctor",
    "runs",
    "show",
    "tail",
    "stop",
    "pause",
    "resume",
    "steer",
    "as-claude",
    "replay",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(ralph: Ralph, command: str) -> None:
    result = ralph(command, "--help")
    assert result.returncode == 0, result
    assert result.stdout.startswith(f"Usage: ralph {command}")


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "as-claude"])
def test_h_is_short_for_help(ralph: Ralph, command: str) -> None:
    """Except for as-claude, where every flag but --help belongs to Claude Code."""
    assert ralph(command, "-h").stdout == ralph(command, "--help").stdout


def test_ralph_alone_lists_every_command_under_a_heading(ralph: Ralph) -> None:
    result = ralph()
    assert result.returncode == 0
    assert result.stdout == ralph("--help").stdout
    _, *sections = re.split(r"^(\w[\w ]*):$", result.stdout, flags=re.MULTILINE)[2::2]
    listed = [line.split(maxsplit=1) for section in sections for line in section.strip().splitlines()]
    assert [name for name, _ in listed] == list(COMMANDS)
    assert all(re.fullmatch(r"[A-Z].*\.", summary) for _, summary in listed)
    assert max(len(line) for line in result.stdout.splitlines()) <= 80


def test_click_also_knows_the_version(ralph: Ralph) -> None:
    """`ralph --version` alone is answered before click is imported."""
    assert ralph("--version", "run").stdout == ralph("--version").stdout == f"ralph {__version__}\n"


BUG = """
import sys
import ralph.cli.init
def broken(_):
    raise KeyError("oh no")
ralph.cli.init.working_directory = broken
sys.argv = ["ralph", "init"]
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


def test_a_bug_is_reported_in_one_sentence_with_details_in_a_file(tmp_path: Path) -> None:
    (tmp_path / ".ralph").mkdir()
    done = crash(tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "bug in ralph" in done.stderr
    (file,) = (tmp_path / ".ralph").iterdir()
    assert str(file.relative_to(tmp_path)) in done.stderr
    assert "KeyError: 'oh no'" in file.read_text()


def test_without_a_journal_the_details_go_to_the_temporary_directory(tmp_path: Path) -> None:
    done = crash(tmp_path, TMPDIR=str(tmp_path))
    (file,) = tmp_path.glob("ralph-crash-*.txt")
    assert str(file) in done.stderr


def test_ralph_debug_shows_the_traceback(tmp_path: Path) -> None:
    done = crash(tmp_path, RALPH_DEBUG="1", TMPDIR=str(tmp_path))
    assert "Traceback" in done.stderr
    assert not list(tmp_path.iterdir())
