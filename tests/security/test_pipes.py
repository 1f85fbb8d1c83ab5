"""A pipe or an endless file where ralph expects a regular file does not hold it up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from processes import alive, eventually, nothing_left_behind, read_pid
from ralph.errors import RunError
from ralph.journal.appender import Appender, RawFile
from ralph.journal.files import drop_torn_line
from ralph.system import interrupt, short
from ralph.system.digest import digest
from ralph.system.files import file_hash

if TYPE_CHECKING:
    from collections.abc import Callable

    Ralph = Callable[..., subprocess.CompletedProcess[str]]

MARK = "<promise>COMPLETE</promise>"


@pytest.mark.parametrize("kind", [Appender, RawFile])
def test_the_journal_is_not_written_into_a_pipe(tmp_path: Path, kind: type[Appender]) -> None:
    os.mkfifo(tmp_path / "events.jsonl")
    with pytest.raises(RunError, match=r"events\.jsonl"):
        kind(tmp_path / "events.jsonl")


def test_a_pipe_named_git_does_not_block(ralph: Ralph, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("piped")
    os.mkfifo(folder / ".git")
    done = ralph("run", "-p", "x", "--agent-cmd", f"echo '{MARK}'", "1", cwd=folder, timeout=30)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["events.jsonl", "run.json", "baseline", "iterations/0001/stdout.raw", "lock"])
def test_a_resumed_run_whose_files_are_pipes_does_not_block(ralph: Ralph, repo: Path, name: str) -> None:
    assert ralph("run", "--agent-cmd", "echo hi", "1").returncode == 2
    (run,) = (repo / ".ralph" / "runs").iterdir()
    (run / name).unlink()
    os.mkfifo(run / name)
    done = ralph("run", "--resume", "--agent-cmd", f"echo '{MARK}'", "2", timeout=30)
    assert done.returncode in (0, 1, 64), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.endurance
def test_a_long_last_line_without_an_end_is_not_read_forever(tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    with events.open("wb") as file:
        file.truncate(1 << 40)  # sparse
    with pytest.raises(OSError, match="too long"):
        drop_torn_line(events)


def test_a_file_is_hashed_in_pieces_up_to_a_size(tmp_path: Path) -> None:
    file = tmp_path / "code"
    file.write_bytes(b"x" * (3 << 20))
    assert file_hash(file, 3 << 20) == digest(b"x" * (3 << 20))
    with pytest.raises(OSError, match="larger than 2 MiB"):
        file_hash(file, 2 << 20)


def test_hashing_ends_with_an_interrupt(tmp_path: Path) -> None:
    """Each of the files is as large as an approved file may be, and takes no space."""
    files = [tmp_path / f"tool{n}" for n in range(40)]
    for file in files:
        with file.open("wb") as sparse:
            sparse.truncate(256 << 20)
    script = (
        "import sys; from pathlib import Path; from ralph.trust.items import of_files\n"
        "print('up', flush=True); of_files(map(Path, sys.argv[2:]), Path(sys.argv[1]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path), *map(str, files)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    assert process.wait(60) != 0
    assert time.monotonic() - began < 5  # all of them take more than 10 s
    process.stdout.close()


def test_git_that_waits_for_a_pipe_ends_with_a_request_to_stop(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(repo / ".gitignore")
    began = time.monotonic()
    with nothing_left_behind(monkeypatch), interrupt.counted_by(lambda: int(time.monotonic() > began + 0.3)):
        done = short.run(["git", "status", "--porcelain"], timeout=60, cwd=repo)
    assert done.reason == "interrupted"
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_version_probe_that_hangs_ends_with_ralph(
    repo: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    folder = tmp_path_factory.mktemp("bin")
    (folder / "claude").write_text("#!/bin/sh\n(setsid sleep 600 &)\necho $$ > $HOME/probe\nsleep 600\n")
    (folder / "claude").chmod(0o755)
    with nothing_left_behind(monkeypatch):
        process = subprocess.Popen(
            [sys.executable, "-m", "ralph", "run", "--agent", "claude", "1"],
            cwd=repo,
            env=os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        probe = read_pid(Path(os.environ["HOME"]) / "probe")
        process.send_signal(how)
        process.wait(30)
        assert eventually(lambda: not alive(probe))
