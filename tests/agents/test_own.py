"""The user's own agents, in files beside the built-in ones."""

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


def test_xdg_config_home_counts(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, "bolt")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert "bolt" not in registry.names()
    (tmp_path / "ralph" / "agents").mkdir(parents=True)
    write(tmp_path / "ralph" / "agents", "nut")
    assert "nut" in registry.names()


def test_a_file_that_is_changed_is_read_again(folder: Path) -> None:
    path = write(folder, "bolt")
    assert registry.get("bolt").title == "Own bolt"
    path.write_text(path.read_text().replace("Own bolt", "Another"))
    os.utime(path, ns=(1, 1))
    assert registry.get("bolt").title == "Another"


def test_it_may_replace_a_built_in_one(folder: Path) -> None:
    write(folder, "mine", name="claude")
    assert registry.get("claude").title == "Own mine"
    assert [s.title for s in registry.all_specs() if s.name == "claude"] == ["Own mine"]
    assert registry.names().count("claude") == 1
    assert registry.get("claude-code").title == "Own mine"  # not the built-in one by the back door


def test_it_has_its_place_in_detection(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, "bolt", rest="detect = 0")
    program = tmp_path / "bolt"
    program.write_text("#!/bin/sh\necho bolt 1.2.3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = detect.auto({})
    assert (found.spec.name, found.version) == ("bolt", "1.2.3")


def test_a_broken_file_is_a_warning_to_others_and_an_error_to_who_wants_it(folder: Path) -> None:
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


def test_the_built_in_one_does_not_step_in_for_a_broken_replacement(folder: Path) -> None:
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
def test_a_name_that_is_given_twice_is_an_error_for_both(
    folder: Path, first: dict[str, str], second: dict[str, str]
) -> None:
    write(folder, **first)
    write(folder, **second)
    warnings = registry.warnings()
    assert len(warnings) == 2
    assert f"'bolt' is also given by {second['stem']}.toml" in warnings[0]
    assert f"'bolt' is also given by {first['stem']}.toml" in warnings[1]
    assert registry.own().specs == {}
    with pytest.raises(UsageError):
        registry.get("bolt")


def test_the_names_of_built_in_agents_are_taken(folder: Path) -> None:
    write(folder, "a", aliases='"codex"')
    write(folder, "b", name="claude-code")
    write(folder, "c", aliases='"x", "x"')
    told = "\n".join(registry.warnings())
    assert "'codex' is that of a built-in agent: to replace that one, say name = \"codex\"" in told
    assert "'claude-code' is another name of the built-in agent claude" in told
    assert "it gives the name 'x' twice" in told
    with pytest.raises(UsageError, match="another name of the built-in agent claude"):
        registry.get("claude-code")
    assert registry.get("codex").title == "OpenAI Codex"


def test_those_of_a_project_are_named_and_not_used_without_approval(tmp_path: Path) -> None:
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


def test_those_of_a_project_are_used_when_it_is_trusted_but_never_in_place_of_others(tmp_path: Path) -> None:
    agents = tmp_path / ".ralph" / "agents"
    agents.mkdir(parents=True)
    write(agents, "bolt")
    write(agents, "codex")
    assert registry.get("bolt", tmp_path, lambda _: True).title == "Own bolt"
    assert registry.get("codex", tmp_path, lambda _: True).title == "OpenAI Codex"
    with pytest.raises(UsageError, match="no agent 'bolt'"):
        registry.get("bolt")


def test_a_link_out_of_the_project_is_no_agent_of_it(tmp_path: Path) -> None:
    elsewhere, agents = tmp_path / "elsewhere", tmp_path / "project" / ".ralph" / "agents"
    elsewhere.mkdir()
    agents.mkdir(parents=True)
    write(elsewhere, "bolt")
    (agents / "bolt.toml").symlink_to(elsewhere / "bolt.toml")
    for name in ("bolt", "../../../elsewhere/bolt", "../agents/bolt"):
        with pytest.raises(UsageError, match="there is no agent"):
            registry.get(name, tmp_path / "project", lambda _: True)


def test_an_unreadable_folder_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ralph").write_text("a file where a folder should be")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert registry.own().specs == {}
