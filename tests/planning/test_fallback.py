"""The plans of the agents that take over."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ralph.config.layers import resolve
from ralph.errors import UsageError
from ralph.planning.prepare import prepare_launch
from ralph.trust.approval import Trust

if TYPE_CHECKING:
    from ralph.launching.launch import Launch


@pytest.fixture(autouse=True)
def agents(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """`claude` and `codex` in PATH, and nothing else of that kind."""
    programs = tmp_path_factory.mktemp("programs")
    for name, version in (("claude", "2.1.0 (Claude Code)"), ("codex", "codex-cli 0.166.0")):
        program = programs / name
        program.write_text(f"#!/bin/sh\necho '{version}'\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin")


def plan(folder: Path, **flags: Any) -> Launch:
    return prepare_launch(resolve(folder, flags, environ={}), folder, Trust(everything=True))


def test_each_agent_of_the_list_has_its_own_plan(tmp_path: Path) -> None:
    made = plan(tmp_path, agents=("claude,codex",))
    assert (made.agent, [other.agent for other in made.fallbacks]) == ("claude", ["codex"])
    (codex,) = made.fallbacks
    assert Path(codex.base[0]).name == "codex"
    assert codex.transcript == "codex"
    assert codex.fallbacks == ()


def test_what_was_written_for_the_first_is_not_given_to_the_others_and_that_is_said(tmp_path: Path) -> None:
    made = plan(tmp_path, agents=("claude,codex",), model="opus", transcript="claude")
    (codex,) = made.fallbacks
    assert "opus" in made.base
    assert "opus" not in codex.base
    assert codex.transcript == "codex"
    assert any("model (--model) is for claude: codex runs with its own" in w for w in made.resolved.warnings)


def test_without_a_list_nobody_takes_over(tmp_path: Path) -> None:
    assert plan(tmp_path, agent="claude").fallbacks == ()
    assert plan(tmp_path, agents=("claude,codex",), on_limit="wait").fallbacks == ()


def test_a_command_can_be_one_of_them(tmp_path: Path) -> None:
    made = plan(tmp_path, agents=("custom,codex",), agent_cmd="my-agent --yes")
    assert (made.template, [other.agent for other in made.fallbacks]) == ("my-agent --yes", ["codex"])
    assert made.fallbacks[0].template is None


def test_one_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Gemini"):
        plan(tmp_path, agents=("claude,gemini",))
