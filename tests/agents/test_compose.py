"""The command lines for releases with different flags."""

from __future__ import annotations

import pytest

from ralph.agents import registry
from ralph.agents.compose import arguments, choose_invocation
from ralph.agents.spec import Delivery

ARGUMENT, STDIN = Delivery.ARGUMENT, Delivery.STDIN


@pytest.mark.parametrize(
    ("agent", "version", "help_text", "line", "prompt"),
    [
        # Kimi Code and kimi-cli have both been 0.x; only the one in Python has --print.
        ("kimi", "2.1.0", "", "--output-format stream-json", ARGUMENT),
        ("kimi", "0.43.1", "-p, --prompt <prompt>", "--output-format stream-json", ARGUMENT),
        ("kimi", "0.10.0", "-p, --prompt <prompt>", "--output-format stream-json", ARGUMENT),
        ("kimi", "1.51.0", "│ --print  Run in print mode", "--print --output-format stream-json", STDIN),
        ("kimi", "0.70", "│ --print  Run in print mode", "--print --output-format stream-json", STDIN),
        ("kimi", "0.45", "--print   Run in print mode", "--print --output-format stream-json", STDIN),
        # 0.52 prints text instead of JSON when the prompt is piped; 0.30 does not read it.
        ("pi", "0.87.1", "", "--mode json", STDIN),
        ("pi", "0.73.1", "", "--mode json", STDIN),
        ("pi", "0.52.12", "", "--mode json", ARGUMENT),
        ("pi", "0.30.2", "", "--mode json", ARGUMENT),
        # 2.x waits for an answer to every question unless a flag turns questions off.
        ("cline", "3.0.57", "", "--json", ARGUMENT),
        ("cline", "2.18.0", "", "-y --json", ARGUMENT),
        ("qwen", "0.24.4", "", "-o stream-json -y", STDIN),
        ("qwen", "0.5.2", "", "-o stream-json -y", STDIN),
        ("qwen", "0.1.4", "", "-o json -y", STDIN),
        ("copilot", "1.0.102", "", "--no-ask-user --output-format json --allow-all-tools", STDIN),
        ("copilot", "1.0.12", "--output-format", "--no-ask-user --output-format json --allow-all-tools", STDIN),
        ("copilot", "0.0.343", "--allow-all-tools", "--allow-all-tools", STDIN),
    ],
)
def test_a_release_gets_only_flags_that_it_has(
    agent: str, version: str, help_text: str, line: str, prompt: Delivery
) -> None:
    spec = registry.get(agent)
    chosen = choose_invocation(spec, version, lambda _args: help_text)
    assert " ".join(arguments(spec, chosen)) == line
    assert chosen.prompt is prompt
    assert chosen.transcript == agent


@pytest.mark.parametrize(
    ("agent", "version", "help_text", "first", "later"),
    [
        ("copilot", "1.0.102", "", "--session-id ID", "--session-id ID"),
        ("copilot", "1.0.40", "--session-id", "--session-id ID", "--session-id ID"),
        # It does not accept a session id, but reports one.
        ("copilot", "1.0.12", "--output-format --resume", "", "--resume=ID"),
        # It does not report its session id, but accepts any.
        ("kimi", "1.12.0", "--print", "--session ID", "--session ID"),
        ("kimi", "0.43.1", "", "", "-S ID"),
        ("pi", "0.52.12", "", "", "--session ID"),
    ],
)
def test_a_session_starts_and_resumes_with_the_flags_of_the_release(
    agent: str, version: str, help_text: str, first: str, later: str
) -> None:
    spec = registry.get(agent)
    chosen = choose_invocation(spec, version, lambda _args: help_text)
    plain = arguments(spec, chosen)
    named = arguments(spec, chosen, session="ID")
    continued = arguments(spec, chosen, session="ID", resume=True)
    assert " ".join(a for a in named if a not in plain) == first
    assert " ".join(a for a in continued if a not in plain) == later


@pytest.mark.parametrize(
    ("agent", "version", "help_text"),
    [("pi", "0.30.2", ""), ("qwen", "0.1.4", ""), ("copilot", "0.0.343", ""), ("kimi", "0.45", "--print")],
)
def test_the_first_releases_cannot_resume_a_session(agent: str, version: str, help_text: str) -> None:
    spec = registry.get(agent)
    assert (choose_invocation(spec, version, lambda _args: help_text).session or spec.session) is None


def test_an_unknown_version_gets_the_flags_of_the_newest() -> None:
    """On a busy machine, the version command may time out."""
    for agent, line in (("cline", "--json"), ("pi", "--mode json"), ("qwen", "-o stream-json -y")):
        spec = registry.get(agent)
        assert " ".join(arguments(spec, choose_invocation(spec, None, lambda _args: ""))) == line
