"""Common command lines of `ralph run` are read without click, and mean the same to click."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import pytest
from hypothesis import given as over
from hypothesis import strategies as st

from ralph.cli.options import given
from ralph.cli.quick import RunArguments, read
from ralph.cli.run_command import run_command
from ralph.config.settings import OPTIONS

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Ralph = Callable[..., subprocess.CompletedProcess[str]]

FLAGS = [flag for option in OPTIONS for flag in option.flags]
NO = [f"--no-{flag.removeprefix('--')}" for flag in FLAGS if flag.startswith("--")]
OWN = ["-c", "--config", "--dry-run", "--trust", "--resume", "-h", "--help", "--", "-", "-x", "--no", "--nonsense"]
WORDS = ["", "7", "two words", "a=b", "-1", "-p", "yes", "--verify", "=", "ä", "a,b"]


def by_click(arguments: list[str]) -> tuple[RunArguments, list[str]] | None:
    """How click reads it, with the order of the settings; None if click reports an error, or for --resume."""
    try:
        context = run_command.make_context("run", list(arguments))
    except (click.ClickException, click.exceptions.Exit):
        return None
    values = dict(context.params)
    own = values.pop("config_file"), values.pop("dry_run"), values.pop("trust")
    if values.pop("resume") is not None:
        return None
    flags = given(values)
    return RunArguments(flags, *own), list(flags)


def compare(arguments: list[str]) -> None:
    asked = read(arguments)
    if asked is not None:
        assert by_click(arguments) == (asked, list(asked.flags))


@over(
    st.lists(
        st.one_of(
            st.sampled_from(FLAGS),
            st.sampled_from([*NO, *OWN]),
            st.sampled_from(WORDS),
            st.builds("{}={}".format, st.sampled_from([*FLAGS, *NO, *OWN]), st.sampled_from(WORDS)),
            st.builds("{}{}".format, st.sampled_from(FLAGS), st.sampled_from(WORDS)),
            st.text(max_size=4),
        ),
        max_size=6,
    )
)
def test_every_accepted_command_line_means_the_same_to_click(arguments: list[str]) -> None:
    compare(arguments)


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("rest", [[], ["x"], ["x", "7"], ["7", "--dry-run"]])
def test_every_flag_means_the_same_to_click(flag: str, rest: list[str]) -> None:
    compare([flag, *rest])
    compare([f"{flag}=x", *rest])
    compare([*rest, flag, "x", flag, "y"])


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["20"],
        ["-p", "Fix the tests", "--verify", "make test", "--verify=make lint"],
        ["--agent", "codex", "--max-cost", "5", "--max-runtime", "8h"],
        ["--agent-cmd", "my-agent --yes", "--dry-run", "--trust", "--no-pty", "-c", "other.yml", "3"],
    ],
)
def test_common_command_lines_are_accepted(arguments: list[str]) -> None:
    """If everything were left to click, the other tests would prove nothing."""
    assert read(arguments) is not None
    compare(arguments)


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--resume"], ["1", "2"], ["-pFix"], ["--prompt"], ["--pty=yes"], ["--", "3"], ["--prom", "x"]],
)
def test_other_forms_are_left_to_click(arguments: list[str]) -> None:
    assert read(arguments) is None


def test_mistakes_are_reported_by_click(ralph: Ralph, repo: Path) -> None:
    result = ralph("run", "--prmpt", "x")
    assert result.returncode == 64
    assert "There is no option" in result.stderr
    assert "--prompt" in result.stderr
