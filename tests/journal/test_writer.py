"""Writing runs to disk."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from ralph.errors import RunError
from ralph.journal.appender import RawFile
from ralph.journal.layout import StatePaths
from ralph.journal.writer import JournalWriter, new_run_id, prepare_state
from ralph.masking.masker import Masker
from ralph.system.folders import user_state_dir
from ralph.transcripts.events import Meta, Tag, Text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_ids_sort_by_time_and_differ_within_a_millisecond() -> None:
    assert new_run_id(1_000_000.0) < new_run_id(1_000_000.5) < new_run_id(1_000_001.0) < new_run_id(1_100_000.0)
    assert len({new_run_id(5.0) for _ in range(20)}) > 1


def test_events_carry_time_iteration_and_sequence(tmp_path: Path) -> None:
    with JournalWriter(prepare_state(tmp_path), "r1") as journal:
        journal.events([Text(Tag.AI, "before")])
        journal.begin_iteration(1, b"p")
        written = journal.events([Text(Tag.AI, "a\nb"), Meta({"kind": "x"})])
    lines = (tmp_path / ".ralph" / "runs" / "r1" / "events.jsonl").read_bytes()
    assert lines.endswith(written)
    rows = [json.loads(line) for line in lines.splitlines()]
    assert [(r["seq"], r["iteration"]) for r in rows] == [(1, 0), (2, 1), (3, 1)]
    assert all(r["time"] > 1_600_000_000 for r in rows)
    assert rows[1] | {"time": 0} == {
        "seq": 2,
        "time": 0,
        "iteration": 1,
        "type": "text",
        "tag": "AI",
        "text": "a\nb",
    }


def test_a_lone_surrogate_does_not_stop_the_journal(tmp_path: Path) -> None:
    with JournalWriter(prepare_state(tmp_path), "r1") as journal:
        line = journal.events([Text(Tag.AI, "half \ud83d"), Meta({"files": ["\udcff"]})])
    assert b"half \xef\xbf\xbd" in line


def test_only_the_user_can_read_a_run(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with JournalWriter(prepare_state(tmp_path), "r1") as journal:
            journal.write_run({"a": 1})
            prompt, out, err = journal.begin_iteration(1, b"p")
            out.write(b"x")
            out.close()
            err.close()
    finally:
        os.umask(before)
    folder = prompt.parent
    assert [mode(journal.paths.root), mode(folder)] == [0o700, 0o700]
    files = [prompt, folder / "stdout.raw", folder / "stderr.raw", journal.paths.events, journal.paths.run_json]
    assert [mode(f) for f in files] == [0o600] * 5


def test_latest_points_to_the_newest_run(tmp_path: Path) -> None:
    state = prepare_state(tmp_path)
    for name in ("r1", "r2"):
        with JournalWriter(state, name):
            pass
    assert str(state.latest.readlink()) == "runs/r2"
    assert (state.latest / "events.jsonl").is_file()


def test_agent_events_links_to_the_newest_events(tmp_path: Path) -> None:
    for name in ("r1", "r2"):
        with JournalWriter(prepare_state(tmp_path), name) as journal:
            journal.events([Text(Tag.AI, name)])
    assert b'"text":"r2"' in (tmp_path / ".agent" / "events.jsonl").read_bytes()


def test_an_existing_agent_events_file_is_kept(tmp_path: Path) -> None:
    (tmp_path / ".agent").mkdir()
    (tmp_path / ".agent" / "events.jsonl").write_text("mine\n")
    with JournalWriter(prepare_state(tmp_path), "r1"):
        pass
    assert (tmp_path / ".agent" / "events.jsonl").read_text() == "mine\n"
    assert not (tmp_path / ".agent" / ".gitignore").exists()


def test_a_file_named_dot_agent_is_not_an_obstacle(tmp_path: Path) -> None:
    (tmp_path / ".agent").write_text("mine\n")
    with JournalWriter(prepare_state(tmp_path), "r1"):
        pass
    assert (tmp_path / ".agent").read_text() == "mine\n"


def test_git_ignores_the_journal(repo: Path) -> None:
    with JournalWriter(prepare_state(repo), "r1") as journal:
        journal.write_run({})
        journal.begin_iteration(1, b"p")
    status = subprocess.run(["git", "status", "--porcelain"], cwd=repo, check=True, capture_output=True)
    assert status.stdout == b""


def untracked(repo: Path) -> str:
    command = ["git", "status", "--porcelain", "--untracked-files=all"]
    return subprocess.run(command, cwd=repo, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("place", [".", "sub/a [b]*"])
def test_git_ignores_the_journal_beside_a_tracked_gitignore(repo: Path, place: str) -> None:
    workdir = repo / place
    for name in (".ralph", ".agent"):
        (workdir / name).mkdir(parents=True)
        (workdir / name / ".gitignore").write_text("logs/\n")
    for command in (["add", "-A"], ["commit", "-q", "-m", "theirs"]):
        subprocess.run(["git", *command], cwd=repo, check=True)
    for name in ("r1", "r2"):
        with JournalWriter(prepare_state(workdir), name) as journal:
            journal.write_run({})
    assert untracked(repo) == ""
    assert (workdir / ".ralph" / ".gitignore").read_text() == "logs/\n"
    assert (repo / ".git" / "info" / "exclude").read_text().count("/runs/") == 1


def test_git_ignores_the_journal_in_an_additional_working_tree(
    repo: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (repo / ".ralph").mkdir()
    (repo / ".ralph" / ".gitignore").write_text("logs/\n")
    tree = tmp_path_factory.mktemp("trees") / "tree"
    for command in (["add", "-A"], ["commit", "-q", "-m", "theirs"], ["worktree", "add", "-q", str(tree)]):
        subprocess.run(["git", *command], cwd=repo, check=True)
    with JournalWriter(prepare_state(tree), "r1") as journal:
        journal.write_run({})
    assert untracked(tree) == ""


def test_git_sees_the_users_own_files_beside_the_journal(repo: Path) -> None:
    with JournalWriter(prepare_state(repo), "r1"):
        pass
    names = [".agent/plan.md", ".ralph/latest-news.md", ".ralph/specs/one.md"]
    (repo / ".ralph" / "specs").mkdir()
    for name in names:
        (repo / name).write_text("mine\n")
    assert untracked(repo) == "".join(f"?? {name}\n" for name in names)


def test_a_repositorys_own_pointer_does_not_make_us_write_elsewhere(
    repo: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (repo / ".git").rename(elsewhere / "git")
    (repo / ".git").write_text(f"gitdir: {elsewhere / 'git'}\n")
    (repo / ".ralph").mkdir()
    (repo / ".ralph" / ".gitignore").write_text("logs/\n")
    with JournalWriter(prepare_state(repo), "r1"):
        pass
    assert not (elsewhere / "git" / "info").exists()


def test_an_existing_run_is_never_overwritten(tmp_path: Path) -> None:
    state = prepare_state(tmp_path)
    with JournalWriter(state, "r1") as journal:
        journal.events([Text(Tag.AI, "x")])
    with pytest.raises(RunError):
        JournalWriter(state, "r1")
    assert b'"x"' in journal.paths.events.read_bytes()


@pytest.mark.parametrize("in_the_way", [".ralph", ".ralph/runs"])
def test_a_file_in_the_way_is_named(tmp_path: Path, in_the_way: str) -> None:
    path = tmp_path / in_the_way
    path.parent.mkdir(exist_ok=True)
    path.write_text("x")
    with pytest.raises(RunError, match="journal cannot be written"):
        prepare_state(tmp_path)


@pytest.mark.parametrize("name", ["latest", "lock"])
def test_a_folder_in_the_way_is_reported_without_a_traceback(ralph: Callable[..., Any], repo: Path, name: str) -> None:
    (repo / ".ralph" / name).mkdir(parents=True)
    (repo / ".ralph" / name / "x").touch()
    done = ralph("run", "--agent-cmd", "echo x", "1")
    assert done.returncode == 1
    assert f"the journal cannot be written: {repo / '.ralph' / name}" in done.stderr
    assert "bug" not in done.stderr


@pytest.mark.parametrize(
    ("kilobytes", "agent"),
    [(40, "head -c 3000000 /dev/zero; sleep 600"), (0, "echo x"), (1, "echo x"), (2, "seq 300; sleep 600")],
)
def test_a_full_disk_is_a_clear_error(repo: Path, kilobytes: int, agent: str) -> None:
    """A limit on file sizes makes the same writes fail as a full disk."""
    limited = ["bash", "-c", f'ulimit -f {kilobytes}; exec "$0" "$@"', sys.executable]
    done = subprocess.run(
        [*limited, "-m", "ralph", "run", "--agent-cmd", agent, "1"],
        cwd=repo,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "the journal cannot be written" in done.stdout + done.stderr
    assert "bug" not in done.stderr
    assert "Traceback" not in done.stderr
    for events in repo.glob(".ralph/runs/*/events.jsonl"):  # no line is incomplete
        for line in events.read_bytes().splitlines(keepends=True):
            assert line.endswith(b"\n")
            json.loads(line)


def test_raw_stdout_and_stderr_are_kept_byte_for_byte(ralph: Callable[..., Any], repo: Path) -> None:
    data = bytes(range(256)) * 50
    (repo / "data").write_bytes(data)
    ralph("run", "--agent-cmd", "cat data; cat data data >&2", "1")
    folder = repo / ".ralph" / "latest" / "iterations" / "0001"
    assert (folder / "stdout.raw").read_bytes() == data
    assert (folder / "stderr.raw").read_bytes() == data * 2


def test_run_json_records_what_was_run(ralph: Callable[..., Any], repo: Path) -> None:
    ralph("run", "--agent-cmd", "echo x", "1", "--max-failures", "7", env={"SOME_API_KEY": "very-secret-value"})
    text = (repo / ".ralph" / "latest" / "run.json").read_text()
    facts = json.loads(text)
    assert facts["argv"][-1] == "echo x"
    assert facts["agent"] == "custom"
    assert facts["cwd"] == str(repo)
    assert facts["settings"]["max_failures"] == 7
    assert facts["origins"]["max_failures"] == "--max-failures"
    assert "SOME_API_KEY" in facts["credentials"]
    assert "very-secret-value" not in text


def test_a_resumed_run_reuses_an_iteration_folder_without_output(tmp_path: Path) -> None:
    state = prepare_state(tmp_path)
    with JournalWriter(state, "r1") as journal:
        journal.begin_iteration(1, b"half of the pro")
    with JournalWriter(state, "r1", resume=True) as journal:
        prompt, out, _ = journal.begin_iteration(1, b"the prompt")
        out.write(b"words")
        assert prompt.read_bytes() == b"the prompt"
    with JournalWriter(state, "r1", resume=True) as journal, pytest.raises(RunError, match="exists"):
        journal.begin_iteration(1, b"p")  # output of an agent is never overwritten


def test_state_paths_are_below_the_working_directory(tmp_path: Path) -> None:
    assert StatePaths(tmp_path).runs == tmp_path / ".ralph" / "runs"


def test_a_raw_file_stores_and_returns_the_bytes_of_a_pipe(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.set_blocking(read, False)
    raw = RawFile(tmp_path / "raw")
    with pytest.raises(BlockingIOError):
        raw.take(read, 100)
    os.write(write, b"one\0" * 10)
    assert raw.take(read, 24) == b"one\0" * 6
    os.write(write, b"two\xff")
    assert raw.take(read, 100) == b"one\0" * 4 + b"two\xff"
    os.close(write)
    assert raw.take(read, 100) == b""
    raw.write(b"written directly")
    raw.close()
    os.close(read)
    assert (tmp_path / "raw").read_bytes() == b"one\0" * 10 + b"two\xff" + b"written directly"


def test_a_raw_file_works_without_splice(tmp_path: Path) -> None:
    """The kernel does not splice from one regular file to another."""
    source = tmp_path / "source"
    source.write_bytes(b"a few bytes")
    raw = RawFile(tmp_path / "raw")
    with source.open("rb") as file:
        assert raw.take(file.fileno(), 5) == b"a few"
        assert raw.take(file.fileno(), 100) == b" bytes"
    raw.close()
    assert (tmp_path / "raw").read_bytes() == b"a few bytes"


def begin(state: StatePaths, name: str, facts: object, *, events: bool = False) -> None:
    """Starts a run that fails to write run.json, before or after its first event."""
    with JournalWriter(state, name) as journal:
        if events:
            journal.record([Meta({"kind": "x"})])
        journal.paths.run_json.mkdir()
        journal.write_run({"facts": facts})


def test_a_run_that_could_not_start_leaves_nothing(tmp_path: Path) -> None:
    state = prepare_state(tmp_path)
    with pytest.raises(RunError):
        begin(state, "r1", "x", events=True)
    with pytest.raises(RunError):
        begin(state, "r2", "x")
    assert [p.name for p in state.runs.iterdir()] == ["r1"]
    assert not state.latest.is_symlink()


def test_a_file_that_is_masked_later_is_masked_in_the_backup_too(tmp_path: Path) -> None:
    masker = Masker({"s3cr3t-value-1234": "KEY"})
    with JournalWriter(prepare_state(tmp_path), "1", masker=masker, redact_raw=True) as journal:
        prompt, *raw = journal.begin_iteration(1, b"use s3cr3t-value-1234\n")
        for file in raw:
            file.close()
        names = list(user_state_dir().rglob("prompt.md"))
        assert [name.read_bytes() for name in names] == [b"use s3cr3t-value-1234\n"]
        journal.end_iteration(1)
        assert b"s3cr3t" not in prompt.read_bytes()
        assert b"s3cr3t" not in names[0].read_bytes()
