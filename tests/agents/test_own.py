"""The user's own agents, next to the built-in ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ralph.agents import detect, registry
from ralph.errors import UsageError


@pytest.fixture
def folder() -> Path:
    path = Path(os.environ["HOME"]) / ".config" / "ralph" / "agents"
    path.mkdir(parents=True)
    return path


def write(folder: Path, stem: str, *, name: str = "", aliases: str = "", rest: str = "", commands: str = "") -> Path:
    path = folder / f"{stem}.toml"
    path.write_text(
        f'name = "{name or stem}"\ntitle = "Own {stem}"\ncommands = ["{commands or stem}"]\naliases = [{aliases}]\n'
        f'install = "get {stem}"\n{rest}\n[[invocation]]\nargs = ["run"]\n'
    )
    return path


def test_a_file_in_the_users_folder_is_an_agent(folder: Path) -> None:
    write(folder, "bolt", aliases='"bolt-cli"')
    assert registry.get("bolt").title == "Own bolt"
    assert registry.get("bolt-cli").name == "bolt"
    assert "bolt" in registry.names()
    assert "bolt" in [spec.name for spec in registry.all_specs()]
    assert registry.get("codex").title == "OpenAI Codex"
    assert registry.warnings() == []


def test_xdg_config_home_is_respected(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, "bolt")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert "bolt" not in registry.names()
    (tmp_path / "ralph" / "agents").mkdir(parents=True)
    write(tmp_path / "ralph" / "agents", "nut")
    assert "nut" in registry.names()


def test_a_changed_file_is_read_again(folder: Path) -> None:
    path = write(folder, "bolt")
    assert registry.get("bolt").title == "Own bolt"
    path.write_text(path.read_text().replace("Own bolt", "Another"))
    os.utime(path, ns=(1, 1))
    assert registry.get("bolt").title == "Another"


def test_a_file_may_replace_a_built_in_agent(folder: Path) -> None:
    write(folder, "mine", name="claude")
    assert registry.get("claude").title == "Own mine"
    assert [s.title for s in registry.all_specs() if s.name == "claude"] == ["Own mine"]
    assert registry.names().count("claude") == 1
    assert registry.get("claude-code").title == "Own mine"  # not the built-in one, although the alias is its own


def test_detection_includes_own_agents(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, "bolt", rest="detect = 0")
    program = tmp_path / "bolt"
    program.write_text("#!/bin/sh\necho bolt 1.2.3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = detect.auto({})
    assert (found.spec.name, found.version) == ("bolt", "1.2.3")


def test_a_broken_file_is_an_error_only_for_its_own_agent(folder: Path) -> None:
    write(folder, "bolt", rest="detct = 3")
    write(folder, "nut")
    assert registry.get("nut").title == "Own nut"
    assert registry.get("codex").name == "codex"
    (warning,) = registry.warnings()
    assert str(folder / "bolt.toml") in warning
    assert "there is no key 'detct' (did you mean 'detect'?)" in warning
    with pytest.raises(UsageError) as caught:
        registry.get("bolt")
    assert "there is no key 'detct'" in str(caught.value)


def test_a_broken_replacement_does_not_bring_back_the_built_in_agent(folder: Path) -> None:
    write(folder, "codex", rest="detct = 3")
    with pytest.raises(UsageError, match="'detct'"):
        registry.get("codex")
    assert "codex" not in [spec.name for spec in registry.all_specs()]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"stem": "a", "name": "bolt"}, {"stem": "b", "name": "bolt"}),
        ({"stem": "bolt"}, {"stem": "nut", "aliases": '"bolt"'}),
        ({"stem": "a", "aliases": '"bolt"'}, {"stem": "b", "aliases": '"bolt"'}),
    ],
)
def test_a_duplicate_name_is_an_error_for_both_files(
    folder: Path, first: dict[str, str], second: dict[str, str]
) -> None:
    write(folder, **first)
    write(folder, **second)
    warnings = registry.warnings()
    assert len(warnings) == 2
    assert f"'bolt' is also used by {second['stem']}.toml" in warnings[0]
    assert f"'bolt' is also used by {first['stem']}.toml" in warnings[1]
    assert registry.own().specs == {}
    with pytest.raises(UsageError):
        registry.get("bolt")


def test_names_of_built_in_agents_are_reserved(folder: Path) -> None:
    write(folder, "a", aliases='"codex"')
    write(folder, "b", name="claude-code")
    write(folder, "c", aliases='"x", "x"')
    warnings = "\n".join(registry.warnings())
    assert "'codex' is the name of a built-in agent: to replace that agent, write name = \"codex\"" in warnings
    assert "'claude-code' is an alias of the built-in agent claude" in warnings
    assert "it uses the name 'x' twice" in warnings
    with pytest.raises(UsageError, match="an alias of the built-in agent claude"):
        registry.get("claude-code")
    assert registry.get("codex").title == "OpenAI Codex"


def test_agents_of_an_unapproved_project_are_listed_but_not_used(tmp_path: Path) -> None:
    agents = tmp_path / ".ralph" / "agents"
    agents.mkdir(parents=True)
    write(agents, "bolt")
    with pytest.raises(UsageError) as caught:
        registry.get("bolt", tmp_path)
    text = str(caught.value)
    assert "there is no agent 'bolt'" in text
    assert ".ralph/agents/bolt.toml" in text
    assert "have approved it" in text
    assert "trust" in text
    assert "bolt" not in registry.names()


def test_agents_of_a_trusted_project_never_replace_others(tmp_path: Path) -> None:
    agents = tmp_path / ".ralph" / "agents"
    agents.mkdir(parents=True)
    write(agents, "bolt")
    write(agents, "codex")
    assert registry.get("bolt", tmp_path, lambda _: True).title == "Own bolt"
    assert registry.get("codex", tmp_path, lambda _: True).title == "OpenAI Codex"
    with pytest.raises(UsageError, match="no agent 'bolt'"):
        registry.get("bolt")


def test_a_link_to_a_file_outside_the_project_is_ignored(tmp_path: Path) -> None:
    elsewhere, agents = tmp_path / "elsewhere", tmp_path / "project" / ".ralph" / "agents"
    elsewhere.mkdir()
    agents.mkdir(parents=True)
    write(elsewhere, "bolt")
    (agents / "bolt.toml").symlink_to(elsewhere / "bolt.toml")
    for name in ("bolt", "../../../elsewhere/bolt", "../agents/bolt"):
        with pytest.raises(UsageError, match="there is no agent"):
            registry.get(name, tmp_path / "project", lambda _: True)


def test_an_unreadable_folder_has_no_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ralph").write_text("a file where a folder should be")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert registry.own().specs == {}
