"""What changed, in real repositories."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from ralph.tree.inspector import Inspector

if TYPE_CHECKING:
    from pathlib import Path

    from ralph.tree.snapshot import Changes


def git(where: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=where, check=True, capture_output=True, text=True).stdout


def commit(where: Path, message: str = "more") -> None:
    git(where, "add", "-A")
    git(where, "commit", "-q", "-m", message)


class Watch:
    """A snapshot, and the changes since."""

    def __init__(self, workdir: Path, ours: tuple[Path, ...] = ()) -> None:
        self.inspector = Inspector(workdir, ours)
        self.before = self.inspector.take()

    def changes(self) -> Changes:
        return self.inspector.compare(self.before, self.inspector.take())


def test_nothing_happened(repo: Path) -> None:
    changes = Watch(repo).changes()
    assert (changes.changed, changes.files, changes.commits) == (False, [], 0)


def test_an_edit_an_untracked_file_and_a_deletion(repo: Path) -> None:
    watch = Watch(repo)
    (repo / "README.md").write_text("other\n")
    (repo / "new.txt").write_text("new\n")
    (repo / "PROMPT.md").unlink()
    changes = watch.changes()
    assert changes.changed
    assert changes.files == ["PROMPT.md", "README.md", "new.txt"]


def test_a_commit_counts_with_its_files(repo: Path) -> None:
    watch = Watch(repo)
    (repo / "a.txt").write_text("1\n")
    commit(repo)
    (repo / "b.txt").write_text("1\n")
    commit(repo)
    changes = watch.changes()
    assert (changes.changed, changes.files, changes.commits) == (True, ["a.txt", "b.txt"], 2)


def test_committing_existing_changes_is_progress_without_changed_files(repo: Path) -> None:
    (repo / "a.txt").write_text("1\n")
    (repo / "README.md").write_text("changed before\n")
    watch = Watch(repo)
    commit(repo)
    changes = watch.changes()
    assert (changes.changed, changes.files, changes.commits) == (True, [], 1)


def test_staging_is_progress_without_changed_files(repo: Path) -> None:
    (repo / "a.txt").write_text("1\n")
    (repo / "README.md").write_text("changed before\n")
    watch = Watch(repo)
    git(repo, "add", "-A")
    changes = watch.changes()
    assert (changes.changed, changes.files) == (True, [])


def test_an_empty_commit_is_progress(repo: Path) -> None:
    watch = Watch(repo)
    git(repo, "commit", "-q", "--allow-empty", "-m", "nothing")
    assert (watch.changes().changed, watch.changes().commits) == (True, 1)


def test_touching_a_file_is_not_progress(repo: Path) -> None:
    (repo / "untracked").write_text("same\n")
    (repo / "PROMPT.md").write_text("edited\n")
    watch = Watch(repo)
    for name in ("README.md", "untracked", "PROMPT.md"):
        os.utime(repo / name, (1, 1))
    assert not watch.changes().changed


def test_touching_a_large_file_is_not_progress_and_changing_it_is(repo: Path) -> None:
    large = repo / "large.bin"
    large.write_bytes(b"x" * (5 << 20))
    watch = Watch(repo)
    os.utime(large, (1, 1))
    assert not watch.changes().changed
    with large.open("r+b") as file:
        file.seek(100)
        file.write(b"y")
    assert watch.changes().files == ["large.bin"]


def test_committing_an_existing_large_file_changes_no_file(repo: Path) -> None:
    (repo / "large.bin").write_bytes(b"x" * (5 << 20))
    watch = Watch(repo)
    commit(repo)
    assert (watch.changes().changed, watch.changes().files) == (True, [])


def test_an_edit_of_a_file_that_was_already_changed(repo: Path) -> None:
    (repo / "README.md").write_text("one\n")
    watch = Watch(repo)
    (repo / "README.md").write_text("two\n")
    assert watch.changes().files == ["README.md"]


def test_undoing_an_earlier_change_is_a_change(repo: Path) -> None:
    (repo / "README.md").write_text("one\n")
    watch = Watch(repo)
    git(repo, "checkout", "-q", "README.md")
    assert watch.changes().files == ["README.md"]


def test_a_change_that_is_undone_again_is_none(repo: Path) -> None:
    watch = Watch(repo)
    (repo / "README.md").write_text("one\n")
    git(repo, "checkout", "-q", "README.md")
    assert not watch.changes().changed


def test_a_commit_and_its_revert_change_no_file(repo: Path) -> None:
    watch = Watch(repo)
    (repo / "README.md").write_text("one\n")
    commit(repo)
    git(repo, "revert", "--no-edit", "HEAD")
    changes = watch.changes()
    assert (changes.files, changes.commits) == ([], 2)


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("edited_before", [False, True])
def test_a_change_of_mode_is_a_change(repo: Path, committed: bool, edited_before: bool) -> None:
    if edited_before:
        (repo / "README.md").write_text("edited\n")
    watch = Watch(repo)
    (repo / "README.md").chmod(0o755)
    if committed:
        commit(repo)
    changes = watch.changes()
    assert (changes.changed, changes.files) == (True, ["README.md"])


@pytest.mark.parametrize("committed", [False, True])
def test_a_rename_is_seen_on_both_sides(repo: Path, committed: bool) -> None:
    watch = Watch(repo)
    git(repo, "mv", "README.md", "READ.md")
    if committed:
        commit(repo)
    assert watch.changes().files == ["READ.md", "README.md"]


def test_a_deletion_that_is_committed(repo: Path) -> None:
    watch = Watch(repo)
    git(repo, "rm", "-q", "README.md")
    commit(repo)
    assert watch.changes().files == ["README.md"]


def test_files_in_new_folders_are_seen_one_by_one(repo: Path) -> None:
    watch = Watch(repo)
    (repo / "a" / "b").mkdir(parents=True)
    (repo / "a" / "b" / "c.txt").write_text("c")
    (repo / "a" / "d.txt").write_text("d")
    assert watch.changes().files == ["a/b/c.txt", "a/d.txt"]


@pytest.mark.parametrize("name", [b"with space", b"new\nline", b"tab\there", b'quote"d', b"\xff\xfe", "ü→".encode()])
@pytest.mark.parametrize("committed", [False, True])
def test_any_file_name(repo: Path, name: bytes, committed: bool) -> None:
    watch = Watch(repo)
    (repo / os.fsdecode(name)).write_text("x")
    if committed:
        commit(repo)
    changes = watch.changes()
    assert changes.files == [os.fsdecode(name)]


def test_a_symlink_is_its_target(repo: Path) -> None:
    link = repo / "link"
    link.symlink_to("README.md")
    watch = Watch(repo)
    assert not watch.changes().changed
    link.unlink()
    link.symlink_to("nowhere")
    assert watch.changes().files == ["link"]


def test_from_a_subdirectory_the_whole_repository_counts(repo: Path) -> None:
    (repo / "sub").mkdir()
    watch = Watch(repo / "sub")
    (repo / "README.md").write_text("other\n")
    (repo / "sub" / "x").write_text("x")
    assert watch.changes().files == ["README.md", "sub/x"]


def test_ignored_files_do_not_count(repo: Path) -> None:
    (repo / ".gitignore").write_text("build/\n")
    watch = Watch(repo)
    (repo / "build").mkdir()
    (repo / "build" / "x").write_text("x")
    assert not watch.changes().changed


def test_only_the_exact_files_of_ralph_do_not_count(repo: Path) -> None:
    ours = (repo / ".ralph/runs/1", repo / ".ralph/latest", repo / "last_agent_output")
    (repo / ".ralph" / "runs" / "1").mkdir(parents=True)
    watch = Watch(repo, ours=ours)
    (repo / ".ralph/runs/1/events.jsonl").write_text("x")
    (repo / ".ralph/latest").symlink_to("runs/1")
    (repo / "last_agent_output").write_text("x")
    assert not watch.changes().changed
    names = [".ralph/latest.sh", ".ralph/runs/10", ".ralph/runs.py", "last_agent_output.py", "sub/last_agent_output"]
    (repo / "sub").mkdir()
    for name in names:
        (repo / name).write_text("x")
    assert watch.changes().files == sorted(names)


def test_a_repository_without_commits(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "a").write_text("a")
    watch = Watch(tmp_path)
    assert not watch.changes().changed
    (tmp_path / "b").write_text("b")
    assert watch.changes().files == ["b"]
    commit(tmp_path)
    changes = watch.changes()
    assert (changes.files, changes.commits) == (["b"], 1)


def test_a_repository_without_an_index_ignores_files(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / ".gitignore").write_text("*.log\n")
    watch = Watch(tmp_path)
    (tmp_path / "a.log").write_text("a")
    assert not watch.changes().changed


def test_without_git(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    (tmp_path / "deep" / "er").mkdir(parents=True)
    watch = Watch(tmp_path)
    assert not watch.changes().changed
    (tmp_path / "a").write_text("abc")
    (tmp_path / "deep" / "er" / "b").write_text("b")
    changes = watch.changes()
    assert (changes.changed, changes.files, changes.commits) == (True, ["a", "deep/er/b"], 0)


def test_a_repository_made_in_the_meantime_does_not_make_every_file_new(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    watch = Watch(tmp_path)
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "new").write_text("new")
    commit(tmp_path)
    changes = watch.changes()
    assert (changes.changed, changes.files) == (True, ["new"])


def test_without_the_git_command_files_are_compared(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repo / "nowhere"))
    watch = Watch(repo)
    assert not watch.changes().changed
    (repo / "README.md").write_text("other than before\n")
    assert watch.changes().files == ["README.md"]


def test_a_file_in_conflict_is_seen(repo: Path) -> None:
    git(repo, "checkout", "-q", "-b", "side")
    (repo / "README.md").write_text("side\n")
    commit(repo)
    git(repo, "checkout", "-q", "main")
    (repo / "README.md").write_text("main\n")
    commit(repo)
    watch = Watch(repo)
    subprocess.run(["git", "merge", "-q", "side"], cwd=repo, check=False, capture_output=True)
    assert "README.md" in watch.changes().files
