"""The record of a run survives an agent or a check that deletes all untracked files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from processes import eventually

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from going import Going

    Ralph = Callable[..., subprocess.CompletedProcess[str]]
    Start = Callable[..., Going]

MARK = "<promise>COMPLETE</promise>"
RESTORED = "it was restored"
SECOND = "[ $RALPH_ITERATION = 2 ] &&"
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
    assert not (repo / ".git" / "ralph").exists()  # the backup is gone, so the user can delete the record


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
    assert not (repo / ".git" / "ralph").exists()


def test_two_directories_in_a_repository_have_separate_records(ralph: Ralph, start: Start, repo: Path) -> None:
    run = start("echo at-$RALPH_ITERATION; sleep 60", "3")
    run.says("at-1")
    run.kill()
    other = repo / "sub" / "dir%2F"
    other.mkdir(parents=True)
    assert ralph("run", "-p", "x", "--agent-cmd", f"echo '{MARK}'", "1", cwd=other).returncode == 0
    assert [p.name for p in (other / ".ralph" / "runs").iterdir()] != [run.run_id]
    assert (run.root / "events.jsonl").is_file()


def test_without_git_the_run_fails_with_a_reason(ralph: Ralph, tmp_path_factory: pytest.TempPathFactory) -> None:
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
