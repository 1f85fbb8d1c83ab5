"""What an agent does to hide a change from git does not hide it from ralph."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest

from .test_inspector import Watch, commit, git

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def edit(repo: Path) -> None:
    (repo / "README.md").write_text("other\n")


def assume_unchanged(repo: Path) -> list[str]:
    git(repo, "update-index", "--assume-unchanged", "README.md")
    edit(repo)
    return ["README.md"]


def skip_worktree(repo: Path) -> list[str]:
    git(repo, "update-index", "--skip-worktree", "README.md")
    edit(repo)
    return ["README.md"]


def info_exclude(repo: Path) -> list[str]:
    (repo / ".git" / "info").mkdir(exist_ok=True)
    (repo / ".git" / "info" / "exclude").write_text("*.py\n")
    (repo / "new.py").write_text("x")
    return ["new.py"]


def excludes_file(repo: Path) -> list[str]:
    (repo / ".git" / "mine").write_text("*.py\n")
    git(repo, "config", "core.excludesFile", str(repo / ".git" / "mine"))
    (repo / "new.py").write_text("x")
    return ["new.py"]


def ignore_file(repo: Path) -> list[str]:
    (repo / "deep").mkdir()
    (repo / "deep" / ".gitignore").write_text("*\n")
    (repo / "deep" / "new.py").write_text("x")
    return ["deep/.gitignore", "deep/new.py"]


def replaced(repo: Path) -> list[str]:
    old = git(repo, "rev-parse", "HEAD").strip()
    edit(repo)
    commit(repo)
    git(repo, "replace", old, "HEAD")
    return ["README.md"]


def recreated(repo: Path) -> list[str]:
    edit(repo)
    shutil.rmtree(repo / ".git")
    git(repo, "init", "-q", "-b", "main")
    commit(repo)
    return ["README.md"]


def deleted(repo: Path) -> list[str]:
    edit(repo)
    shutil.rmtree(repo / ".git")
    return ["README.md"]


def amended_and_pruned(repo: Path) -> list[str]:
    edit(repo)
    git(repo, "commit", "-q", "-a", "--amend", "-m", "other")
    git(repo, "reflog", "expire", "--expire=now", "--all")
    git(repo, "gc", "-q", "--prune=now")
    return ["README.md"]


def a_normalising_attribute(repo: Path) -> list[str]:
    (repo / ".git" / "info").mkdir(exist_ok=True)
    (repo / ".git" / "info" / "attributes").write_text("* text eol=lf\n")
    (repo / "README.md").write_bytes(b"hello\r\n")
    return ["README.md"]


def sparse_checkout(repo: Path) -> list[str]:
    git(repo, "sparse-checkout", "set", "--no-cone", "/PROMPT.md")
    (repo / "README.md").write_text("again\n")
    return ["README.md"]


def a_folder_called_git(repo: Path) -> list[str]:
    (repo / "sub" / ".git").mkdir(parents=True)
    (repo / "sub" / ".git" / "payload").write_text("x")
    return ["sub/.git/payload"]


def a_repository_that_is_nothing_else(repo: Path) -> list[str]:
    git(repo, "init", "-q", "sub")
    (repo / "sub" / ".git" / "payload").write_text("x")
    return ["sub/.git"]


def a_hook(repo: Path) -> list[str]:
    (repo / ".git" / "hooks").mkdir(exist_ok=True)
    (repo / ".git" / "hooks" / "pre-commit").write_text("#!/bin/sh\n")
    return [".git/hooks/pre-commit"]


def work_tree_elsewhere(repo: Path) -> list[str]:
    git(repo, "config", "core.worktree", "/nowhere")
    edit(repo)
    return ["README.md"]


def same_size_and_time(repo: Path) -> list[str]:
    info = (repo / "README.md").stat()
    (repo / "README.md").write_text("HELLO\n")
    os.utime(repo / "README.md", ns=(info.st_atime_ns, info.st_mtime_ns))
    return ["README.md"]


WAYS = [assume_unchanged, skip_worktree, info_exclude, excludes_file, ignore_file, replaced, recreated, deleted]
WAYS += [amended_and_pruned, a_normalising_attribute, sparse_checkout, a_folder_called_git, work_tree_elsewhere]
WAYS += [same_size_and_time, a_repository_that_is_nothing_else, a_hook]


@pytest.mark.parametrize("hide", WAYS, ids=lambda way: way.__name__)
def test_it_is_seen(repo: Path, hide: Callable[[Path], list[str]]) -> None:
    watch = Watch(repo)
    wanted = hide(repo)
    changes = watch.changes()
    assert changes.changed
    assert changes.files == wanted


@pytest.mark.parametrize("hide", [recreated, deleted, amended_and_pruned], ids=lambda way: way.__name__)
def test_where_the_old_commit_is_gone_the_number_of_commits_is_unknown(
    repo: Path, hide: Callable[[Path], list[str]]
) -> None:
    watch = Watch(repo)
    hide(repo)
    assert watch.changes().commits is None


def test_replacing_a_commit_does_not_change_how_many_there_are(repo: Path) -> None:
    watch = Watch(repo)
    replaced(repo)
    assert watch.changes().commits == 1


@pytest.mark.parametrize("ignored", ["none", "dirty", "all"])
def test_a_submodule_is_looked_at_whatever_git_is_told(
    repo: Path, tmp_path_factory: pytest.TempPathFactory, ignored: str
) -> None:
    other = tmp_path_factory.mktemp("other")
    git(other, "init", "-q", "-b", "main")
    (other / "inside").write_text("1\n")
    (other / ".gitignore").write_text("build/\n")
    commit(other)
    git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "sub")
    commit(repo)
    (repo / ".gitignore").write_text("*.txt\n")  # it does not apply to the submodule
    watch = Watch(repo)
    git(repo, "config", "submodule.sub.ignore", ignored)
    (repo / "sub" / "inside").write_text("2\n")
    (repo / "sub" / "new.txt").write_text("2\n")
    (repo / "sub" / "build").mkdir()
    (repo / "sub" / "build" / "x").write_text("2\n")
    assert watch.changes().files == ["sub/inside", "sub/new.txt"]
    middle = Watch(repo)
    commit(repo / "sub")
    changes = middle.changes()
    assert (changes.changed, changes.files) == (True, [])


def test_a_new_repository_inside_is_looked_at(repo: Path) -> None:
    watch = Watch(repo)
    (repo / "vendor").mkdir()
    git(repo / "vendor", "init", "-q")
    (repo / "vendor" / ".git" / "info").mkdir(exist_ok=True)
    (repo / "vendor" / ".git" / "info" / "exclude").write_text("*\n")
    (repo / "vendor" / "x").write_text("x")
    assert watch.changes().files == ["vendor/.git", "vendor/x"]


def test_what_was_ignored_before_the_run_does_not_count_unless_it_is_tracked(repo: Path) -> None:
    (repo / ".gitignore").write_text("build/\n*.log\n!keep.log\n/only-top\n")
    (repo / "build").mkdir()
    (repo / "build" / "tracked").write_text("1")
    (repo / "tracked.log").write_text("1")
    git(repo, "add", "-f", "build/tracked", "tracked.log")
    commit(repo)
    watch = Watch(repo)
    (repo / ".gitignore").write_text("")  # the rules are those of before
    (repo / "sub" / "build").mkdir(parents=True)
    for name in ("build/x", "sub/build/x", "a.log", "only-top"):
        (repo / name).write_text("2")
    assert watch.changes().files == [".gitignore"]
    for name in ("build/tracked", "tracked.log", "keep.log", "sub/only-top"):
        (repo / name).write_text("2")
    assert watch.changes().files == [".gitignore", "build/tracked", "keep.log", "sub/only-top", "tracked.log"]


def test_an_ignored_folder_costs_no_time(repo: Path) -> None:
    (repo / ".gitignore").write_text("node_modules\n")
    (repo / "node_modules").mkdir()
    (repo / "node_modules" / "x").mkdir(mode=0)
    os.mkfifo(repo / "node_modules" / "pipe")
    assert not any(folder.startswith(b"node_modules") for folder in Watch(repo).before.files)


@pytest.mark.parametrize("name", [".gitignore", ".gitattributes", "sub/.gitignore", ".git/info/exclude", "x"])
@pytest.mark.parametrize("kind", ["pipe", "huge", "socket"])
def test_special_files_block_nothing(repo: Path, name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (repo / name).parent.mkdir(exist_ok=True)
    match kind:
        case "pipe":
            os.mkfifo(repo / name)
        case "huge":
            with (repo / name).open("wb") as file:
                file.truncate(1 << 40)
        case "socket":
            monkeypatch.chdir((repo / name).parent)  # the path of a socket must be short
            with socket.socket(socket.AF_UNIX) as server:
                server.bind((repo / name).name)
    watch = Watch(repo)
    edit(repo)
    assert watch.changes().files == ["README.md"]


def test_a_change_in_a_huge_file_is_seen(repo: Path) -> None:
    huge = repo / "huge"
    with huge.open("wb") as file:
        file.truncate(1 << 40)
    watch = Watch(repo)
    with huge.open("r+b") as file:
        file.seek(1 << 39)
        file.write(b"x")
    assert watch.changes().files == ["huge"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_cannot_be_read_is_a_change(repo: Path) -> None:
    (repo / "sub").mkdir()
    (repo / "sub" / "x").write_text("x")
    watch = Watch(repo)
    (repo / "sub").chmod(0)
    try:
        assert "sub/" in watch.changes().files
    finally:
        (repo / "sub").chmod(0o700)


def test_an_edit_in_the_same_instant_is_seen(repo: Path) -> None:
    """Of the same size, and in the same step of the clock as the one before the snapshot, or nearly so."""
    for number in range(30):
        (repo / "README.md").write_text(f"{number:02d}a\n")
        watch = Watch(repo)
        (repo / "README.md").write_text(f"{number:02d}b\n")
        assert watch.changes().files == ["README.md"]


def test_set_user_id_is_a_change(repo: Path) -> None:
    watch = Watch(repo)
    (repo / "README.md").chmod(0o4644)
    assert watch.changes().files == ["README.md"]


@pytest.mark.endurance
def test_more_files_than_a_few_without_git(tmp_path: Path) -> None:
    for folder in range(21):
        (tmp_path / str(folder)).mkdir()
        for name in range(1000):
            (tmp_path / str(folder) / str(name)).touch()
    watch = Watch(tmp_path)
    (tmp_path / "node_modules").mkdir()
    for name in ("20/new", "9/999", "node_modules/x"):
        (tmp_path / name).write_text("x")
    assert watch.changes().files == ["20/new", "9/999", "node_modules/x"]


def test_git_starts_no_program(repo: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("outside")
    program = folder / "bait"
    program.write_text(f"#!/bin/sh\ntouch {folder}/ran\ncat\n")
    program.chmod(0o755)
    (repo / ".gitattributes").write_text("* filter=a=b\n*.md filter=lfs\n")
    config = f'[filter "a=b"]\n clean = {program}\n process = {program}\n required = true\n'
    config += f'[filter "lfs"]\n clean = {program}\n[alias]\n lfs = !{program}\n status = !{program}\n'
    config += f"[core]\n fsmonitor = {program}\n hooksPath = {folder}\n pager = {program}\n sshCommand = {program}\n"
    with (repo / ".git" / "config").open("a") as file:
        file.write(config)
    subprocess.run(["git", "init", "-q", "sub"], cwd=repo, check=True)
    with (repo / "sub" / ".git" / "config").open("a") as file:
        file.write(config)
    (repo / "sub" / ".gitattributes").write_text("* filter=a=b\n")
    (repo / "sub" / "x").write_text("1")
    watch = Watch(repo)
    edit(repo)
    (repo / "sub" / "x").write_text("2")
    assert watch.changes().files == ["README.md", "sub/x"]
    assert not (folder / "ran").exists()
