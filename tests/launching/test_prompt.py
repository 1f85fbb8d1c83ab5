"""Where the prompt is found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ralph.config.layers import resolve
from ralph.errors import UsageError
from ralph.planning.prepare import prompt_source

if TYPE_CHECKING:
    from pathlib import Path

    from ralph.launching.prompt import PromptSource


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`project/ralph.yml`, and a working directory `project/work` below it; the current directory is `project/here`."""
    project = tmp_path / "project"
    for name in ("work", "here"):
        (project / name).mkdir(parents=True)
    monkeypatch.chdir(project / "here")
    return project


def found(tree: Path, yaml: str = "", environ: dict[str, str] | None = None, **flags: Any) -> PromptSource:
    (tree / "ralph.yml").write_text(yaml)
    return prompt_source(resolve(tree / "work", flags, environ=environ or {}), tree / "work")


def test_the_default_is_prompt_md_in_the_working_directory(tree: Path) -> None:
    (tree / "work" / "PROMPT.md").write_text("work\n")
    (tree / "PROMPT.md").write_text("project\n")
    source = found(tree)
    assert (source.read(), source.shown) == ("work\n", "PROMPT.md")


def test_a_path_in_ralph_yml_is_relative_to_the_working_directory_then_to_that_file(tree: Path) -> None:
    (tree / "P.md").write_text("beside\n")
    assert found(tree, "prompt_file: P.md\n").read() == "beside\n"
    (tree / "work" / "P.md").write_text("work\n")
    assert found(tree, "prompt_file: P.md\n").read() == "work\n"


@pytest.mark.parametrize("how", ["flag", "variable"])
def test_a_typed_path_is_relative_to_the_current_directory_then_to_the_working_directory(tree: Path, how: str) -> None:
    given: dict[str, Any] = {"prompt_file": "P.md"} if how == "flag" else {"environ": {"RALPH_PROMPT_FILE": "P.md"}}
    (tree / "work" / "P.md").write_text("work\n")
    assert found(tree, **given).read() == "work\n"
    (tree / "here" / "P.md").write_text("here\n")
    assert found(tree, **given).read() == "here\n"


def test_the_prompt_is_read_again_each_time(tree: Path) -> None:
    (tree / "work" / "PROMPT.md").write_text("one\n")
    source = found(tree)
    assert source.read() == "one\n"
    (tree / "work" / "PROMPT.md").write_text("two\n")
    assert source.read() == "two\n"


def test_only_a_command_can_run_without_a_prompt_and_only_if_that_is_typed(tree: Path) -> None:
    source = found(tree, agent_cmd="cat", prompt="")
    assert source.absent
    assert source.read() == ""
    for other in (found(tree, "prompt: ''\n", agent_cmd="cat"), found(tree, prompt="", agent="claude")):
        assert not other.absent
        with pytest.raises(UsageError, match="is empty"):
            other.read()
    for missing in (found(tree, agent_cmd="cat"), found(tree, agent_cmd="cat", prompt_file="missing.md")):
        assert not missing.absent
        with pytest.raises(UsageError, match="does not exist"):
            missing.read()


def test_a_tilde_stands_for_the_home_directory(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tree))
    (tree / "P.md").write_text("home\n")
    assert found(tree, "prompt_file: ~/P.md\n").read() == "home\n"
