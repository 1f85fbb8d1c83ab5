"""One run per directory."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ralph.errors import RunError, UsageError
from ralph.journal.lock import RunLock, is_locked

if TYPE_CHECKING:
    from pathlib import Path


def test_a_second_holder_is_refused_with_the_name_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with RunLock(path) as lock:
        lock.claim("run-1")
        assert is_locked(path)
        with pytest.raises(UsageError, match="run run-1, process"), RunLock(path):
            pass
    assert not is_locked(path)


def test_a_released_lock_can_be_taken_again(tmp_path: Path) -> None:
    for name in ("a-long-name", "b"):
        with RunLock(tmp_path / "lock") as lock:
            lock.claim(name)
            assert (tmp_path / "lock").read_text().startswith(f"run {name}, process ")


def test_the_lock_of_a_killed_process_does_not_block(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    script = (
        "import sys, time; from pathlib import Path; from ralph.journal.lock import RunLock\n"
        "with RunLock(Path(sys.argv[1])) as lock:\n"
        "    lock.claim('dead'); print('held', flush=True); time.sleep(600)"
    )
    holder = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    assert is_locked(path)
    holder.kill()
    holder.communicate()
    assert not is_locked(path)
    with RunLock(path):
        pass


def test_checking_a_lock_does_not_block_a_run_that_starts(tmp_path: Path) -> None:
    """`ralph show` and `ralph tail` check the lock; a run that starts at that moment must not be refused."""
    path = tmp_path / "lock"
    path.touch()
    script = (
        "import sys; from pathlib import Path; from ralph.journal.lock import is_locked\n"
        "print('up', flush=True)\nwhile True: is_locked(Path(sys.argv[1]))"
    )
    checker = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE)
    try:
        assert checker.stdout is not None
        checker.stdout.readline()
        for _ in range(20_000):
            with RunLock(path):
                pass
    finally:
        checker.kill()
        checker.communicate()


def test_a_lock_that_cannot_be_created_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="missing"), RunLock(tmp_path / "missing" / "lock"):
        pass


def test_a_missing_file_is_not_locked(tmp_path: Path) -> None:
    assert not is_locked(tmp_path / "lock")
