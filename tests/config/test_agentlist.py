"""A list of agents: the first one runs, the others are fallbacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ralph.config.layers import Resolved, resolve
from ralph.config.settings import OnLimit
from ralph.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


def look(folder: Path, yaml: str = "", **flags: Any) -> Resolved:
    (folder / "ralph.yml").write_text(yaml)
    return resolve(folder, flags, environ={})


def test_the_first_agent_runs_and_the_others_are_fallbacks(tmp_path: Path) -> None:
    found = look(tmp_path, "agents: [claude, codex]\n")
    assert (found.settings.agent, found.settings.agents) == ("claude", ("claude", "codex"))
    assert (found.origins["agent"], found.settings.on_limit) == ("ralph.yml:1", OnLimit.FALLBACK)


def test_the_flag_takes_names_separated_by_commas(tmp_path: Path) -> None:
    settings = look(tmp_path, agents=("claude, codex,claude",)).settings
    assert (settings.agent, settings.agents) == ("claude", ("claude", "codex"))


def test_an_explicit_on_limit_beats_the_list(tmp_path: Path) -> None:
    found = look(tmp_path, "agents: [claude, codex]\non_limit: wait\n")
    assert found.settings.on_limit is OnLimit.WAIT


def test_a_list_of_one_has_no_fallback(tmp_path: Path) -> None:
    assert look(tmp_path, "agents: claude\n").settings.on_limit is OnLimit.WAIT


@pytest.mark.parametrize("flags", [{"agent": "gemini"}, {"agent_cmd": "true"}])
def test_a_stronger_choice_of_agent_drops_the_list(tmp_path: Path, flags: dict[str, str]) -> None:
    found = look(tmp_path, "agents: [claude, codex]\n", **flags)
    assert (found.settings.agents, found.settings.on_limit) == ((), OnLimit.WAIT)
    assert found.settings.agent == flags.get("agent", "custom")


def test_an_agent_and_a_list_that_disagree_are_an_error_by_flag_and_a_warning_in_a_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--agent names gemini, but --agents begins with claude"):
        look(tmp_path, agent="gemini", agents=("claude,codex",))
    found = look(tmp_path, "agent: gemini\nagents: [claude, codex]\n")
    assert found.settings.agent == "claude"
    assert "ralph.yml:1 names gemini" in found.warnings[0]


def test_fallback_without_a_list_is_an_error_by_flag_and_a_warning_otherwise(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="fallback needs a list of agents"):
        look(tmp_path, on_limit="fallback")
    found = look(tmp_path, "agents: [claude, codex]\non_limit: fallback\n", agent="gemini")
    assert found.settings.on_limit is OnLimit.WAIT
    assert "fallback needs a list" in found.warnings[0]
