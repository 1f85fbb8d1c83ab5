"""`--dry-run` shows everything and does nothing."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

import pytest

from ralph.cli.dryrun import show_value

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Ralph = Callable[..., subprocess.CompletedProcess[str]]


def rows(text: str) -> dict[str, list[str]]:
    """The first part, as name -> lines."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in text.partition("Settings and where")[0].splitlines():
        if line.startswith("  "):
            name = line[2:15].strip() or name
            found.setdefault(name, []).append(line[16:])
    return found


def settings(text: str) -> dict[str, tuple[str, str]]:
    table = text.partition("each came from:\n")[2].partition("\nwarning")[0]
    parts = [line.split() for line in table.splitlines() if line.strip()]
    return {p[0]: (" ".join(p[1:-1]), p[-1]) for p in parts}


def test_a_dry_run_shows_the_exact_argv_and_runs_nothing(ralph: Ralph, repo: Path) -> None:
    before = sorted(os.listdir(repo))
    result = ralph("run", "7", "--agent-cmd", "touch made; cat > it's", "--dry-run")
    assert result.returncode == 0, result
    shown = rows(result.stdout)
    assert shlex.split(" ".join(shown["argv"])) == [shlex.split(shown["argv"][0])[0], "-lc", "touch made; cat > it's"]
    assert shown["argv"][0].endswith("bash")
    assert shown["directory"] == [str(repo)]
    assert shown["prompt"] == ["on stdin: 13 characters, 13 bytes, from PROMPT.md"]
    assert sorted(os.listdir(repo)) == before


def test_a_dry_run_shows_the_length_of_the_prompt_and_its_delivery(ralph: Ralph, repo: Path) -> None:
    (repo / "ralph.yml").write_text("cli:\n  backend: custom\n  command: echo\n  prompt_flag: --prompt\n")
    (shown,) = rows(ralph("run", "-p", "déjà", "--dry-run").stdout)["prompt"]
    assert shown == "as one argument after --prompt: 4 characters, 6 bytes, from --prompt"
    argv = rows(ralph("run", "-p", "two\nlines", "--dry-run").stdout)["argv"]
    assert argv[1:] == ["--prompt", r"$'two\nlines'"]


def test_a_long_prompt_is_shortened(ralph: Ralph, repo: Path) -> None:
    (repo / "ralph.yml").write_text("cli:\n  backend: custom\n  command: echo\n")
    (repo / "PROMPT.md").write_text("word " * 5000)
    text = ralph("run", "--dry-run").stdout
    assert "25,000 characters" in text
    assert text.count("word") < 50


def test_credentials_are_named_and_never_shown(ralph: Ralph) -> None:
    secrets = {
        "OPENAI_API_KEY": "s3cr3t-1",
        "GITHUB_TOKEN": "s3cr3t-2",
        "PGPASSWORD": "s3cr3t-3",
        "AWS_SECRET_ACCESS_KEY": "s3cr3t-4",
        "MONKEY": "s3cr3t-5",
    }
    result = ralph("run", "--agent-cmd", "echo $OPENAI_API_KEY", "--dry-run", env=secrets)
    (names,) = rows(result.stdout)["credentials"]
    shown = names.split(", ")
    assert {"OPENAI_API_KEY", "GITHUB_TOKEN", "PGPASSWORD", "AWS_SECRET_ACCESS_KEY"} <= set(shown)
    assert "MONKEY" not in shown
    assert "s3cr3t" not in result.stdout + result.stderr


def test_limits_and_origins_are_shown_as_people_write_them(ralph: Ralph, repo: Path) -> None:
    (repo / "ralph.yml").write_text("# x\nidle_timeout: 90\nmax_failures: 0\n")
    result = ralph(
        "run",
        "7",
        "--agent-cmd",
        "cat",
        "--max-runtime",
        "1h30m",
        "--max-cost",
        "2.5",
        "--dry-run",
        env={"RALPH_MAX_TOKENS": "5000"},
    )
    shown = settings(result.stdout)
    assert shown["max_iterations"] == ("7", "MAX_ITERATIONS")
    assert shown["max_runtime"] == ("1h30m", "--max-runtime")
    assert shown["max_cost"] == ("2.5", "--max-cost")
    assert shown["max_tokens"] == ("5000", "RALPH_MAX_TOKENS")
    assert shown["idle_timeout"] == ("1m30s", "ralph.yml:2")
    assert shown["max_failures"] == ("no limit", "ralph.yml:3")
    assert shown["wall_timeout"] == ("2h", "default")
    assert shown["verify_timeout"] == ("10m", "default")
    assert shown["sleep"] == ("none", "default")


def test_a_dry_run_fails_where_the_run_would_fail(ralph: Ralph, repo: Path) -> None:
    (repo / "ralph.yml").write_text("cli:\n  backend: custom\n  command: echo\n")
    (repo / "PROMPT.md").write_text("x" * 200_000)
    assert ralph("run", "--dry-run").returncode == 64
    assert ralph("run", "--dry-run", "-P", "nope").returncode == 64


def test_warnings_are_shown(ralph: Ralph, repo: Path) -> None:
    (repo / "ralph.yml").write_text("agnt: x\n")
    assert "warning: ralph.yml:1: unknown key 'agnt'" in ralph("run", "--agent-cmd", "cat", "--dry-run").stdout


def test_one_character_is_singular(ralph: Ralph, repo: Path) -> None:
    assert rows(ralph("run", "-p", "x", "--agent-cmd", "cat", "--dry-run").stdout)["prompt"] == [
        "on stdin: 1 character, 1 byte, from --prompt"
    ]


def test_the_settings_are_aligned(ralph: Ralph, repo: Path) -> None:
    result = ralph("run", "--agent-cmd", "cat", "--dry-run").stdout
    table = result.partition("each came from:\n\n")[2].splitlines()
    longest = max(len(line.split()[0]) for line in table)
    assert {len(line) - len(line[longest + 3 :].lstrip()) for line in table} == {longest + 3}


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("pty", True, "yes"),
        ("verify", ("a", "b"), "a, b"),
        ("model", None, "-"),
        ("prompt", "a\nb", r"'a\nb'"),
        ("max_cost", 0.0, "no limit"),
        ("denied_after", 0, "off"),
        ("wait_on_limit", 0.0, "0s"),
    ],
)
def test_values_are_one_line(name: str, value: object, shown: str) -> None:
    assert show_value(name, value) == shown


def test_deadlines_are_shown_per_agent(ralph: Ralph, repo: Path) -> None:
    (shown,) = rows(ralph("run", "--agent-cmd", "cat", "--dry-run").stdout)["deadlines"]
    assert shown == "15m without output (default), 2h per iteration (default)"
    (repo / "ralph.yml").write_text("agent: demo\nadapters:\n  demo:\n    timeout: 90\n")
    (shown,) = rows(ralph("run", "--dry-run").stdout)["deadlines"]
    assert "1m30s without output (adapters.demo.timeout)" in shown
    (shown,) = rows(ralph("run", "--dry-run", "--timeout", "0").stdout)["deadlines"]
    assert "no limit per iteration (--wall-timeout)" in shown
