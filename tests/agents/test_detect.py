"""Finding installed agents: real programs in a real PATH."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ralph.agents import detect, registry
from ralph.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH without agents: an empty directory and the system's own programs."""
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def install(folder: Path, name: str, body: str = "echo 1.2.3") -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_the_documented_order_comes_first(tools: Path) -> None:
    order = [spec.name for spec in detect._order(())]
    assert order[:5] == ["claude", "kiro", "gemini", "codex", "amp"]
    assert len(order) > 5
    assert "demo" not in order


def test_the_first_agent_in_order_is_used(tools: Path) -> None:
    install(tools, "amp")
    assert detect.auto({}).spec.name == "amp"
    install(tools, "codex")
    assert detect.auto({}).spec.name == "codex"
    install(tools, "kiro-cli")
    assert detect.auto({}).spec.name == "kiro"
    install(tools, "claude", "echo '2.1.9 (Claude Code)'")
    found = detect.auto({})
    assert (found.spec.name, found.version, found.program) == ("claude", "2.1.9", str(tools / "claude"))


def test_a_disabled_agent_is_skipped(tools: Path) -> None:
    install(tools, "claude")
    install(tools, "gemini")
    assert detect.auto({"claude": False}).spec.name == "gemini"


def test_an_agent_whose_version_command_fails_is_skipped(tools: Path) -> None:
    install(tools, "claude", "exit 1")
    install(tools, "codex")
    assert detect.auto({}).spec.name == "codex"


def test_the_users_order_has_precedence(tools: Path) -> None:
    install(tools, "claude")
    install(tools, "codex")
    assert detect.auto({}, ["codex", "claude"]).spec.name == "codex"
    with pytest.raises(UsageError, match="did you mean 'codex'"):
        detect.auto({}, ["codx"])


def test_the_error_without_any_agent_lists_all_with_a_link_and_a_reason(tools: Path) -> None:
    install(tools, "codex", "exit 3")
    with pytest.raises(UsageError) as caught:
        detect.auto({"gemini": False})
    text = str(caught.value)
    for spec in detect._order(()):
        (line,) = [x for x in text.splitlines() if x.split()[:1] == [spec.name]]
        assert spec.link in line
    assert "disabled" in next(x for x in text.splitlines() if x.split()[0] == "gemini")
    assert "codex --version failed" in next(x for x in text.splitlines() if x.split()[0] == "codex")


def test_a_requested_agent_must_be_installed(tools: Path) -> None:
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


def test_every_agent_says_how_to_install_it() -> None:
    for spec in registry.all_specs():
        assert spec.install or spec.link, spec.name


def test_an_agent_that_is_part_of_ralph_is_always_installed(tools: Path) -> None:
    for name in ("demo", "openai-http"):
        found = detect.explicit(registry.get(name))
        assert (found.spec.name, found.program, found.version) == (name, registry.python(), None)
