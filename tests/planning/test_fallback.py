"""The launches of fallbacks."""

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
    """`claude` and `codex` in PATH, and no other agent."""
    programs = tmp_path_factory.mktemp("programs")
    for name, version in (("claude", "2.1.0 (Claude Code)"), ("codex", "codex-cli 0.166.0")):
        program = programs / name
        program.write_text(f"#!/bin/sh\necho '{version}'\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin")


def launch(folder: Path, **flags: Any) -> Launch:
    return prepare_launch(resolve(folder, flags, environ={}), folder, Trust(everything=True))


def test_each_agent_in_the_list_has_its_own_launch(tmp_path: Path) -> None:
    made = launch(tmp_path, agents=("claude,codex",))
    assert (made.agent, [other.agent for other in made.fallbacks]) == ("claude", ["codex"])
    (codex,) = made.fallbacks
    assert Path(codex.base[0]).name == "codex"
    assert codex.transcript == "codex"
    assert codex.fallbacks == ()


def test_a_fallback_does_not_get_the_first_agents_model_and_a_warning_says_so(tmp_path: Path) -> None:
    made = launch(tmp_path, agents=("claude,codex",), model="opus", transcript="claude")
    (codex,) = made.fallbacks
    assert "opus" in made.base
    assert "opus" not in codex.base
    assert codex.transcript == "codex"
    assert any("model (--model) is for claude: codex uses its own" in w for w in made.resolved.warnings)


def test_without_a_list_there_are_no_fallbacks(tmp_path: Path) -> None:
    assert launch(tmp_path, agent="claude").fallbacks == ()
    assert launch(tmp_path, agents=("claude,codex",), on_limit="wait").fallbacks == ()


def test_a_command_can_have_fallbacks(tmp_path: Path) -> None:
    made = launch(tmp_path, agents=("custom,codex",), agent_cmd="my-agent --yes")
    assert (made.template, [other.agent for other in made.fallbacks]) == ("my-agent --yes", ["codex"])
    assert made.fallbacks[0].template is None


def test_a_missing_fallback_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Gemini"):
        launch(tmp_path, agents=("claude,gemini",))
