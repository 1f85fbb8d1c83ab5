"""Checking for a login without running the agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ralph.agents.login import LoginState, login
from ralph.agents.spec import AgentSpec, Invocation

if TYPE_CHECKING:
    from pathlib import Path


def spec(env: tuple[str, ...] = (), files: tuple[str, ...] = ()) -> AgentSpec:
    return AgentSpec("bolt", "Bolt", ("bolt",), (Invocation(),), login_env=env, login_files=files)


BOTH = spec(("BOLT_KEY", "BOLT_TOKEN"), (".bolt/auth.json",))


def test_a_variable_is_a_login_and_its_value_is_not_shown(tmp_path: Path) -> None:
    found = login(BOTH, {"BOLT_TOKEN": "s3cr3t"}, str(tmp_path), "linux")
    assert (found.state, found.found) == (LoginState.KNOWN, ("BOLT_TOKEN",))
    assert "s3cr3t" not in found.why


def test_a_file_is_a_login(tmp_path: Path) -> None:
    (tmp_path / ".bolt").mkdir()
    (tmp_path / ".bolt" / "auth.json").touch()
    found = login(BOTH, {}, str(tmp_path), "linux")
    assert (found.state, found.found) == (LoginState.KNOWN, ("~/.bolt/auth.json",))


def test_a_login_in_none_of_the_known_places_is_missing(tmp_path: Path) -> None:
    found = login(BOTH, {"BOLT_KEY": ""}, str(tmp_path), "linux")
    assert found.state is LoginState.MISSING
    for name in ("BOLT_KEY", "BOLT_TOKEN", "~/.bolt/auth.json"):
        assert name in found.why


@pytest.mark.parametrize(
    ("agent", "platform"),
    [
        (spec(("BOLT_KEY",)), "linux"),  # the files are not known
        (BOTH, "darwin"),  # the keychain
        (spec(), "linux"),
    ],
)
def test_a_login_that_may_be_elsewhere_is_unknown(tmp_path: Path, agent: AgentSpec, platform: str) -> None:
    assert login(agent, {}, str(tmp_path), platform).state is LoginState.UNKNOWN
