"""The command line for each release, compared to the flags in its recorded `--help`."""

from __future__ import annotations

import pytest

from ralph.agents import registry
from ralph.agents.compose import arguments, choose_invocation

_GEMINI = {"-y", "-m"}
_GEMINI_JSON = _GEMINI | {"-o", "--resume"}
_OPENCODE = {"-m", "-s"}
_OPENCODE_JSON = _OPENCODE | {"--format"}
_OPENCODE_THINKS = _OPENCODE_JSON | {"--thinking"}

RELEASES = [
    ("gemini", "0.1.9", _GEMINI, "text"),
    ("gemini", "0.8.2", _GEMINI | {"-o"}, "text"),
    ("gemini", "0.11.3", _GEMINI | {"-o"}, "json"),
    ("gemini", "0.20.2", _GEMINI_JSON, "json"),
    ("gemini", "0.30.1", _GEMINI_JSON, "json"),
    ("gemini", "0.45.2", _GEMINI_JSON | {"--skip-trust"}, "json"),
    ("gemini", "0.61.0", _GEMINI_JSON | {"--skip-trust"}, "json"),
    ("opencode", "0.5.29", _OPENCODE, "text"),
    ("opencode", "1.0.61", _OPENCODE_JSON, "json"),
    ("opencode", "1.1.31", _OPENCODE_JSON, "json"),
    ("opencode", "1.2.27", _OPENCODE_THINKS, "json"),
    ("opencode", "1.14.41", _OPENCODE_THINKS | {"--dangerously-skip-permissions"}, "json"),
    ("opencode", "1.17.11", _OPENCODE_THINKS | {"--dangerously-skip-permissions"}, "json"),
    ("opencode", "1.18.33", _OPENCODE_THINKS | {"--auto"}, "json"),
]


def _argv(agent: str, version: str, session: str | None = None) -> list[str]:
    spec = registry.get(agent)
    invocation = choose_invocation(spec, version, lambda _: "")
    return arguments(spec, invocation, model="m", session=session, resume=session is not None)


@pytest.mark.parametrize(("agent", "version", "known", "form"), RELEASES)
def test_a_release_gets_only_flags_that_it_knows(agent: str, version: str, known: set[str], form: str) -> None:
    argv = _argv(agent, version)
    assert {a for a in argv if a.startswith("-")} <= known
    assert any("json" in a for a in argv) is (form == "json")


@pytest.mark.parametrize(("agent", "version", "known", "form"), RELEASES)
def test_a_session_is_resumed_only_if_the_release_can(agent: str, version: str, known: set[str], form: str) -> None:
    argv = _argv(agent, version, session="s-1")
    assert ("s-1" in argv) is bool(known & {"--resume", "-s"})
    assert {a for a in argv if a.startswith("-")} <= known


@pytest.mark.parametrize(
    ("version", "flags"),
    [("1.18.33", ["--auto"]), ("1.14.41", ["--dangerously-skip-permissions"]), ("1.2.27", [])],
)
def test_the_approval_flag_fits_the_release(version: str, flags: list[str]) -> None:
    every = {"--auto", "--dangerously-skip-permissions"}
    assert [a for a in _argv("opencode", version) if a in every] == flags


def test_gemini_may_work_in_a_new_folder() -> None:
    """Otherwise it ignores `-y` there, and exits with code 55."""
    invocation = choose_invocation(registry.get("gemini"), "0.61.0", lambda _: "")
    assert invocation.env["GEMINI_CLI_TRUST_WORKSPACE"] == "true"
