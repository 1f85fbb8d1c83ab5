"""`ralph as-claude` in front of a real CLI, driven by our own host of Claude-compatible providers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from ralph.testing.model.scenarios import CONTENT, FILE
from ralph.testing.model.script import usage_of

if TYPE_CHECKING:
    from conftest import Bench

pytestmark = pytest.mark.realcli


@pytest.fixture(autouse=True)
def trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests write the files of the repository themselves."""
    monkeypatch.setenv("RALPH_TRUST", "1")


def provider(bench: Bench, tail: str = "") -> None:
    """Writes a configuration that selects the provider, as users write it."""
    model = f" --model {bench.real.model}" if bench.real.model else ""
    folder = bench.workdir / ".ralphex"
    folder.mkdir()
    command = f"{sys.executable} -m ralph as-claude --agent {bench.real.agent}{model}"
    lines = (f"claude_command = {command}", "claude_args =", "preserve_anthropic_api_key = true", tail)
    (folder / "config").write_text("\n".join(lines))


def command_of_a_host(bench: Bench) -> None:
    """No --agent: the files of the repository select the agent."""
    bench.command = lambda *flags: [sys.executable, "-m", "ralph", "run", *flags]  # type: ignore[method-assign]


def test_a_real_agent_completes_behind_claude_command(bench: Bench) -> None:
    provider(bench)
    command_of_a_host(bench)
    loop = bench.run("success", "3")
    assert loop.code == 0, loop.shown
    (iteration,) = loop.iterations
    assert (iteration["outcome"], iteration["completed"]) == ("ok", True)
    assert (loop.workdir / FILE).read_text() == CONTENT
    if "session" not in bench.real.lacks:
        assert iteration["session_id"]
    if "usage" not in bench.real.lacks:
        turns = [usage_of(step) for step in range(3)]
        assert iteration["usage"]["prompt_tokens"] == sum(t.input for t in turns)
        assert iteration["usage"]["completion_tokens"] == sum(t.output for t in turns)


def test_a_wrong_key_behind_claude_command_needs_a_person(bench: Bench) -> None:
    provider(bench, "idle_timeout = 120s\nsession_timeout = 130s\ntask_retry_count = 0\n")
    command_of_a_host(bench)
    loop = bench.run("error401", "1")
    assert [i["outcome"] for i in loop.iterations] == ["auth"], loop.shown
    assert loop.code == 5
