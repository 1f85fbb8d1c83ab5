"""The disposable repository, and which folders may be deleted."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ralph.errors import UsageError
from ralph.testing import demo_project

if TYPE_CHECKING:
    from pathlib import Path


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_it_is_a_clean_repository_whose_tests_pass(tmp_path: Path) -> None:
    demo_project.create(tmp_path)
    assert git(tmp_path, "status", "--porcelain") == ""
    assert git(tmp_path, "rev-list", "--count", "HEAD").strip() == "1"
    done = subprocess.run([sys.executable, "-m", "unittest"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Ran 3 tests" in done.stderr
    assert (tmp_path / "TASKS.md").read_text().count("- [ ] ") == 4


def test_its_check_runs_under_a_python_whose_path_needs_quoting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ralph.config.layers import resolve

    odd = tmp_path / 'it\'s a "pýthon" $HOME'
    odd.mkdir()
    (odd / "python").symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(odd / "python"))
    project = tmp_path / "project"
    project.mkdir()
    demo_project.create(project)
    (check,) = resolve(project, {}, environ={}).settings.verify
    subprocess.run(["sh", "-c", check], cwd=project, check=True, capture_output=True)


def test_the_git_settings_of_the_user_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "pre-commit").write_text("#!/bin/sh\nexit 1\n")
    (hooks / "pre-commit").chmod(0o755)
    template = tmp_path / "template" / "hooks"
    template.mkdir(parents=True)
    (template / "pre-commit").symlink_to(hooks / "pre-commit")
    (tmp_path / "ignored").write_text("*.py\n*.md\n")
    configuration = tmp_path / "gitconfig"
    configuration.write_text(
        f"[core]\n hooksPath = {hooks}\n excludesFile = {tmp_path / 'ignored'}\n autocrlf = true\n"
        f"[init]\n templateDir = {template.parent}\n defaultBranch = trunk\n"
        "[commit]\n gpgSign = true\n[gpg]\n program = false\n[user]\n name = Somebody Else\n useConfigOnly = true\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(configuration))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").symlink_to(configuration)  # read if the variable is not set
    for name in [n for n in os.environ if n.startswith(("GIT_AUTHOR", "GIT_COMMITTER"))]:
        monkeypatch.delenv(name)
    project = tmp_path / "project"
    project.mkdir()
    demo_project.create(project)
    assert git(project, "log", "--format=%an %G?").strip() == "Demo Agent N"
    assert git(project, "branch", "--show-current").strip() == "main"
    assert {"textkit.py", "TASKS.md", "PROMPT.md"} <= set(git(project, "ls-files").split())
    (project / "textkit.py").write_text("changed = 1\n")
    git(project, "commit", "-qam", "as the agent does it")
    assert b"\r" not in (project / "textkit.py").read_bytes()


def test_a_folder_of_the_user_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    (tmp_path / demo_project.MARKER).write_text("not what we write\n")
    before = files(tmp_path)
    with pytest.raises(UsageError, match="not empty"):
        demo_project.claim_folder(tmp_path)
    assert files(tmp_path) == before


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("mine")
    with pytest.raises(UsageError, match="is a file"):
        demo_project.claim_folder(tmp_path / "x")
    assert (tmp_path / "x").read_text() == "mine"


def test_a_demo_is_emptied_and_links_in_it_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "thesis.txt").write_text("years of work")
    project = tmp_path / "project"
    project.mkdir()
    demo_project.create(project)
    (project / "link").symlink_to(outside)
    inode = project.stat().st_ino
    demo_project.claim_folder(project)
    assert list(project.iterdir()) == []
    assert project.stat().st_ino == inode, "a shell may be in it"
    assert (outside / "thesis.txt").read_text() == "years of work"


def test_a_demo_with_an_active_run_is_left_alone(tmp_path: Path) -> None:
    from ralph.journal.lock import RunLock
    from ralph.journal.writer import prepare_state

    demo_project.create(tmp_path)
    before = files(tmp_path)
    with RunLock(prepare_state(tmp_path).lock), pytest.raises(UsageError, match="running"):
        demo_project.claim_folder(tmp_path)
    assert before.items() <= files(tmp_path).items()
