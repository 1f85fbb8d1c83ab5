"""What is installed: real programs in a real PATH."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ralph.agents import detect, registry
from ralph.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing in it yet but the system's own programs, none of which is an agent."""
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def install(folder: Path, name: str, body: str = "echo 1.2.3") -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_the_order_is_that_of_the_seed_then_the_others(tools: Path) -> None:
    order = [spec.name for spec in detect._order(())]
    assert order[:5] == ["claude", "kiro", "gemini", "codex", "amp"]
    assert len(order) > 5
    assert "demo" not in order


def test_the_first_in_order_is_taken_whatever_the_order_of_installing(tools: Path) -> None:
    install(tools, "amp")
    assert detect.auto({}).spec.name == "amp"
    install(tools, "codex")
    assert detect.auto({}).spec.name == "codex"
    install(tools, "kiro-cli")
    assert detect.auto({}).spec.name == "kiro"
    install(tools, "claude", "echo '2.1.9 (Claude Code)'")
    found = detect.auto({})
    assert (found.spec.name, found.version, found.program) == ("claude", "2.1.9", str(tools / "claude"))


def test_one_that_is_turned_off_is_skipped(tools: Path) -> None:
    install(tools, "claude")
    install(tools, "gemini")
    assert detect.auto({"claude": False}).spec.name == "gemini"


def test_one_that_fails_when_asked_for_its_version_is_skipped(tools: Path) -> None:
    install(tools, "claude", "exit 1")
    install(tools, "codex")
    assert detect.auto({}).spec.name == "codex"


def test_the_users_order_counts(tools: Path) -> None:
    install(tools, "claude")
    install(tools, "codex")
    assert detect.auto({}, ["codex", "claude"]).spec.name == "codex"
    with pytest.raises(UsageError, match="did you mean 'codex'"):
        detect.auto({}, ["codx"])


def test_if_there_is_none_each_is_named_with_a_link_and_the_reason(tools: Path) -> None:
    install(tools, "codex", "exit 3")
    with pytest.raises(UsageError) as caught:
        detect.auto({"gemini": False})
    text = str(caught.value)
    for spec in detect._order(()):
        (line,) = [x for x in text.splitlines() if x.split()[:1] == [spec.name]]
        assert spec.link in line
    assert "turned off" in next(x for x in text.splitlines() if x.split()[0] == "gemini")
    assert "does not answer to --version" in next(x for x in text.splitlines() if x.split()[0] == "codex")


def test_one_that_was_asked_for_must_be_there(tools: Path) -> None:
    with pytest.raises(UsageError) as caught:
        detect.explicit(registry.get("codex"))
    assert "'codex' (OpenAI Codex) was asked for" in str(caught.value)
    assert "npm install -g @openai/codex" in str(caught.value)
    install(tools, "codex")
    install(tools, "claude")
    assert detect.explicit(registry.get("codex")).spec.name == "codex"


def test_a_version_that_cannot_be_read_is_unknown(tools: Path) -> None:
    install(tools, "codex", "echo no number here")
    assert detect.explicit(registry.get("codex")).version is None
    (tools / "codex").write_bytes(b"\x7fELF not really")
    assert detect.explicit(registry.get("codex")).version is None


def test_every_agent_says_how_to_get_it() -> None:
    for spec in registry.all_specs():
        assert spec.install or spec.link, spec.name


def test_an_agent_that_is_part_of_ralph_is_always_there(tools: Path) -> None:
    for name in ("demo", "openai-http"):
        found = detect.explicit(registry.get(name))
        assert (found.spec.name, found.program, found.version) == (name, registry.python(), None)
