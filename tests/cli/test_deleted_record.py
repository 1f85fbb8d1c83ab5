"""The record of a run survives an agent or a check that deletes all untracked files."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from processes import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from going import Going

    Ralph = Callable[..., subprocess.CompletedProcess[str]]
    Start = Callable[..., Going]

MARK = "<promise>COMPLETE</promise>"
RESTORED = "it was restored"
SECOND = "[ $RALPH_ITERATION = 2 ] &&"
WAIT = "while [ ! -e ~/go ]; do sleep 0.05; done;"
#: The stash needs a name for its author.
GIT = "git -c user.name=a -c user.email=a@b.c"


@pytest.mark.parametrize(
    "deletes",
    [
        "git clean -qfdx",
        "rm -rf .ralph",
        "rm -rf .ralph/runs/*/iterations .ralph/runs/*/events.jsonl",
        f"{GIT} stash -qa",
        f"{GIT} stash -qa && {GIT} stash pop -q",
        "rm -rf .ralph .git",
        "rm -rf .ralph .git && git init -q",
    ],
)
def test_a_run_continues_and_its_record_is_complete(start: Start, repo: Path, deletes: str) -> None:
    done = f"[ $RALPH_ITERATION = 3 ] && echo '{MARK}'"
    run = start(f"echo said-$RALPH_ITERATION; {SECOND} {deletes}; {done}; exit 0", "5")
    code, output = run.ended()
    assert (code, output.count(RESTORED)) == (0, 1)
    assert run.outcomes == ["ok", "ok", "ok"]
    for number in (1, 2, 3):
        raw = run.root / "iterations" / f"{number:04d}" / "stdout.raw"
        assert raw.read_text().startswith(f"said-{number}\n")
        assert run.prompt(number) == "Do the work.\n"
    assert (run.root / "run.json").is_file()
    assert (repo / ".ralph" / "latest").resolve() == run.root.resolve()
    assert "/runs/" in (repo / ".ralph" / ".gitignore").read_text().splitlines()
    assert list(_backups()) == []  # the backup is gone, so the user can delete the record


def _let_it_delete() -> None:
    home = Path(os.environ["HOME"])
    (home / "go").touch()
    assert eventually((home / "deleted").exists)


def _backups() -> Iterator[Path]:
    return Path(os.environ["HOME"], ".local", "state", "ralph").rglob("events.jsonl")


@pytest.fixture
def other_filesystem(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path_factory.getbasetemp().stat().st_dev:
        pytest.skip("needs a second file system")
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        monkeypatch.setenv("XDG_STATE_HOME", folder)
        yield Path(folder)


def test_the_backup_is_in_the_git_folder_if_the_home_is_on_another_file_system(
    start: Start, repo: Path, other_filesystem: Path
) -> None:
    run = start(f"ls .git/ralph; git clean -qfdx; echo '{MARK}'", "1")
    code, output = run.ended()
    assert (code, output.count(RESTORED), run.outcomes) == (0, 1, ["ok"])
    assert "runs-" in output
    assert not (repo / ".git" / "ralph").exists()
    assert list(other_filesystem.rglob("lock")) == []


def test_a_check_can_delete_the_record_too(start: Start, repo: Path) -> None:
    # The check also runs before the first iteration.
    run = start(f"echo '{MARK}'", "3", "--verify", "git clean -qfdx")
    code, output = run.ended()
    assert (code, output.count(RESTORED)) == (0, 2)
    assert run.outcomes == ["ok"]
    assert run.end["end"] == "complete"


def test_requests_to_the_run_are_kept(ralph: Ralph, start: Start, repo: Path) -> None:
    run = start(
        "echo at-$RALPH_ITERATION; while [ ! -e .git/go ]; do sleep 0.05; done; git clean -qfdx; sleep 1.5", "2"
    )
    run.says("at-1")
    ralph("steer", "mind the gap")
    run.reaches("steer", 1)
    (repo / ".git" / "go").touch()
    assert run.ended()[0] == 2
    assert run.prompt(2) == "<user-notes>\nmind the gap\n</user-notes>\n\nDo the work.\n"
    assert [note["state"] for note in run.metas("steer")] == ["arrived", "read"]


def test_the_run_can_still_be_stopped_from_another_terminal(ralph: Ralph, start: Start, repo: Path) -> None:
    run = start("echo at-$RALPH_ITERATION; [ $RALPH_ITERATION = 1 ] && git clean -qfdx && exit 0; sleep 60", "3")
    run.says("at-2")
    assert ralph("stop", "--now").returncode == 0
    assert run.ended()[0] == 130


def test_a_second_run_is_still_refused(ralph: Ralph, start: Start, repo: Path) -> None:
    run = start("echo at-$RALPH_ITERATION; [ $RALPH_ITERATION = 1 ] && git clean -qfdx && exit 0; sleep 60", "3")
    run.says("at-2")
    second = ralph("run", "-p", "x", "--agent-cmd", "true", "1")
    assert (second.returncode, "a run is already active" in second.stderr) == (64, True)
    run.close()


@pytest.mark.parametrize("deletes", ["git clean -qfdx", "rm -rf .ralph", "rm -rf .ralph .git", "rm -rf .ralph/lock"])
def test_a_second_run_is_refused_while_the_lock_is_deleted(
    ralph: Ralph, start: Start, repo: Path, deletes: str
) -> None:
    run = start(f"{WAIT} {deletes}; touch ~/deleted; sleep 60", "3")
    _let_it_delete()
    second = ralph("run", "-p", "x", "--agent-cmd", "touch second", "1")
    assert (second.returncode, "a run is already active" in second.stderr) == (64, True)
    assert not (repo / "second").exists()
    run.close()


def test_runs_that_are_not_exclusive_still_run_side_by_side(ralph: Ralph, start: Start, repo: Path) -> None:
    run = start(f"{WAIT} rm -rf .ralph; touch ~/deleted; sleep 60", "3", "--exclusive=no")
    _let_it_delete()
    assert ralph("run", "-p", "x", "--agent-cmd", f"echo '{MARK}'", "1", "--exclusive=no").returncode == 0
    assert ralph("run", "-p", "x", "--agent-cmd", f"echo '{MARK}'", "1").returncode == 64
    run.close()


def test_a_run_that_died_after_the_deletion_can_be_resumed(ralph: Ralph, start: Start, repo: Path) -> None:
    deletes = "while [ ! -e .git/go ]; do sleep 0.05; done; git clean -qfdx; sleep 60"
    run = start(f"echo at-$RALPH_ITERATION; {SECOND} {{ {deletes}; }}; exit 0", "3")
    run.says("at-2")
    (repo / ".git" / "go").touch()
    assert eventually(lambda: not (repo / ".ralph").exists())
    run.process.kill()
    run.process.wait()
    again = ralph("run", "--resume", "--agent-cmd", f"echo '{MARK}'")
    assert again.returncode == 0, again.stderr
    assert len(run.metas("run_resume")) == 1
    for number in (1, 2):
        assert (run.root / "iterations" / f"{number:04d}" / "stdout.raw").read_text() == f"at-{number}\n"
    assert list(_backups()) == []


def test_two_directories_in_a_repository_have_separate_records(ralph: Ralph, start: Start, repo: Path) -> None:
    run = start("echo at-$RALPH_ITERATION; sleep 60", "3")
    run.says("at-1")
    run.kill()
    other = repo / "sub" / "dir%2F"
    other.mkdir(parents=True)
    assert ralph("run", "-p", "x", "--agent-cmd", f"echo '{MARK}'", "1", cwd=other).returncode == 0
    assert [p.name for p in (other / ".ralph" / "runs").iterdir()] != [run.run_id]
    assert (run.root / "events.jsonl").is_file()


def test_without_git_the_record_is_restored_too(ralph: Ralph, tmp_path_factory: pytest.TempPathFactory) -> None:
    bare = tmp_path_factory.mktemp("bare")
    ended = ralph("run", "-p", "x", "--agent-cmd", f"rm -rf .ralph; echo '{MARK}'", "2", cwd=bare)
    assert (ended.returncode, RESTORED in ended.stdout) == (0, True)


@pytest.mark.usefixtures("other_filesystem")
def test_without_any_backup_the_run_fails_with_a_reason(ralph: Ralph, tmp_path_factory: pytest.TempPathFactory) -> None:
    bare = tmp_path_factory.mktemp("bare")
    ended = ralph("run", "-p", "x", "--agent-cmd", "rm -rf .ralph", "2", cwd=bare)
    assert (ended.returncode, "the journal cannot be written" in ended.stdout) == (1, True)


@pytest.mark.parametrize("link", ["ralph", "ralph/runs-"])
def test_a_foreign_link_in_the_git_folder_is_not_followed(
    ralph: Ralph, repo: Path, tmp_path_factory: pytest.TempPathFactory, link: str
) -> None:
    """Backups are deleted at the end, but never through a link of somebody else."""
    home = tmp_path_factory.mktemp("home")
    for folder in (home / "letters", home / "runs-" / "letters"):
        folder.mkdir(parents=True)
        (folder / "events.jsonl").write_text("mine")
    (repo / ".git" / link).parent.mkdir(exist_ok=True)
    (repo / ".git" / link).symlink_to(home)
    assert ralph("run", "1", "--agent-cmd", f"echo '{MARK}'").returncode == 0
    assert sorted(p.name for p in home.rglob("*")) == ["events.jsonl", "events.jsonl", "letters", "letters", "runs-"]
    assert len(list((repo / ".ralph" / "runs").iterdir())) == 1


@pytest.mark.needs("flock")
def test_a_run_starts_below_a_program_that_has_locked_the_directory(repo: Path) -> None:
    """`flock . ralph run` in a crontab."""
    command = ["flock", ".", sys.executable, "-m", "ralph", "run", "1", "--agent-cmd", f"echo '{MARK}'"]
    assert subprocess.run(command, cwd=repo, capture_output=True, timeout=60, check=False).returncode == 0
