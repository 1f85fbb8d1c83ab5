"""The command line of a launch, and its environment."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.agents.spec import MAX_ARGUMENT, Delivery, Invocation
from ralph.config.layers import resolve
from ralph.errors import UsageError
from ralph.launching.launch import Launch
from ralph.planning.prepare import prepare_launch
from ralph.trust.approval import Trust

FILE = Path("/j/prompt.md")


def prepared(tmp_path: Path, yaml: str = "", environ: dict[str, str] | None = None, **flags: Any) -> Launch:
    (tmp_path / "ralph.yml").write_text(yaml)
    return prepare_launch(resolve(tmp_path, flags, environ=environ or {}), tmp_path, Trust(everything=True))


def with_delivery(delivery: Delivery, flag: str | None = None, base: tuple[str, ...] = ("cmd", "-x")) -> Launch:
    resolved = resolve(Path("/nonexistent"), {}, environ={})
    return Launch(
        resolved, Path("/"), "custom", "cmd", None, list(base), Invocation((), delivery, flag), {}, "plain", ""
    )


@pytest.mark.parametrize(
    ("delivery", "flag", "argv", "stdin"),
    [
        (Delivery.STDIN, None, ["cmd", "-x"], b"test"),
        (Delivery.ARGUMENT, None, ["cmd", "-x", "test"], None),
        (Delivery.ARGUMENT, "-p", ["cmd", "-x", "-p", "test"], None),
        (Delivery.FILE, None, ["cmd", "-x", str(FILE)], None),
        (Delivery.FILE, "--file", ["cmd", "-x", "--file", str(FILE)], None),
    ],
)
def test_the_prompt_is_delivered_on_stdin_as_an_argument_or_as_a_file(
    delivery: Delivery, flag: str | None, argv: list[str], stdin: bytes | None
) -> None:
    line = with_delivery(delivery, flag).command_line("test", FILE)
    assert (line.argv, line.stdin) == (argv, stdin)


def test_the_prompt_file_can_be_in_the_middle_of_the_arguments() -> None:
    line = with_delivery(Delivery.FILE, base=("cmd", "--in={prompt_file}", "-y")).command_line("test", FILE)
    assert line.argv == ["cmd", f"--in={FILE}", "-y"]


@given(st.text(max_size=50))
def test_a_prompt_argument_never_looks_like_a_flag(prompt: str) -> None:
    try:
        argument = with_delivery(Delivery.ARGUMENT).command_line(prompt, FILE).argv[-1]
    except (UsageError, UnicodeEncodeError):
        return
    assert not argument.startswith("-")
    assert argument.removeprefix("\n") == prompt.removeprefix("\n")


@pytest.mark.parametrize(("size", "fits"), [(MAX_ARGUMENT, True), (MAX_ARGUMENT + 1, False)])
def test_a_prompt_over_the_kernels_limit_for_an_argument_is_an_error(size: int, fits: bool) -> None:
    chosen = with_delivery(Delivery.ARGUMENT)
    if fits:
        import subprocess

        argument = chosen.command_line("x" * size, FILE).argv[-1]
        assert subprocess.run(["/bin/true", argument], check=False).returncode == 0  # the kernel agrees
    else:
        with pytest.raises(UsageError, match="stdin"):
            chosen.command_line("x" * size, FILE)


def test_the_limit_for_an_argument_counts_bytes() -> None:
    with pytest.raises(UsageError, match="bytes long"):
        with_delivery(Delivery.ARGUMENT).command_line("é" * 70_000, FILE)


def test_stdin_takes_any_size() -> None:
    assert len(with_delivery(Delivery.STDIN).command_line("x" * 10_000_000, FILE).stdin or b"") == 10_000_000


def test_a_command_gets_the_prompt_on_stdin_or_as_a_quoted_file(tmp_path: Path) -> None:
    launch = prepared(tmp_path, agent_cmd="claude --print").command_line("test", FILE)
    assert (launch.argv[1:], launch.stdin) == (["-lc", "claude --print"], b"test")
    launch = prepared(tmp_path, agent_cmd="tool --in {prompt} --again {prompt}").command_line(
        "test", Path("/a b/it's.md")
    )
    import shlex

    assert shlex.split(launch.argv[-1]) == ["tool", "--in", "/a b/it's.md", "--again", "/a b/it's.md"]
    assert launch.stdin is None


def test_the_demo_agent_can_be_chosen(tmp_path: Path) -> None:
    chosen = prepared(tmp_path, agent="demo")
    assert (chosen.base[0], chosen.transcript) == (sys.executable, "rtf1")


def test_the_transcript_is_plain_unless_it_is_set_or_known(tmp_path: Path) -> None:
    assert prepared(tmp_path, agent_cmd="x").transcript == "plain"
    assert prepared(tmp_path, agent_cmd="x", transcript="rtf1").transcript == "rtf1"
    assert prepared(tmp_path, "transcript: rtf1\n", agent_cmd="x").transcript == "rtf1"
    assert prepared(tmp_path, agent_cmd="x", environ={"RALPH_TRANSCRIPT": "rtf1"}).transcript == "rtf1"
    assert prepared(tmp_path, agent="demo", transcript="plain").transcript == "plain"


def test_credentials_are_found_in_the_agents_environment(tmp_path: Path) -> None:
    names = ("ANTHROPIC_API_KEY", "MY_TOKEN", "PGPASSWORD", "TOKENIZERS_PARALLELISM", "KEYBOARD")
    found = prepared(tmp_path, environ=dict.fromkeys(names, "x"), agent_cmd="x").credentials
    assert {"ANTHROPIC_API_KEY", "MY_TOKEN", "PGPASSWORD"} <= set(found)
    assert not {"TOKENIZERS_PARALLELISM", "KEYBOARD"} & set(found)


def test_the_variables_of_an_outer_session_do_not_reach_the_agent(tmp_path: Path) -> None:
    tool = tmp_path / "claude"
    tool.write_text("#!/bin/sh\necho 2.1.0\n")
    tool.chmod(0o755)
    environ = {"CLAUDECODE": "1", "OTHER": "1"}
    seen = prepared(tmp_path, "agent: claude\ncommand: ./claude\n", environ).env
    assert "CLAUDECODE" not in seen
    assert "OTHER" in seen


@pytest.mark.parametrize(("own", "expected"), [(None, "4"), ("9", "9")])
def test_a_variable_that_the_user_set_beats_the_specs_default(
    own: str | None, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude = tmp_path / "claude"
    claude.write_text("#!/bin/sh\necho 2.1.325\n")
    claude.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    environ = {"PATH": os.environ["PATH"]} | ({"CLAUDE_CODE_MAX_RETRIES": own} if own else {})
    made = prepared(tmp_path, environ=environ, agent="claude")
    assert made.env["CLAUDE_CODE_MAX_RETRIES"] == expected
    assert made.env["IS_SANDBOX"] == "1"
