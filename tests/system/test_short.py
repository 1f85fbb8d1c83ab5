"""Short programs end in time, and nothing of them is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from processes import alive, eventually, marked, nothing_left_behind, read_pid, zombies_of
from ralph.system import children, interrupt, short

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Leaves the session and loses its parent, with or without the pipe.
_ESCAPE = "(setsid sh -c 'echo $$ > stray; exec sleep 600' {} &); while [ ! -s stray ]; do sleep 0.01; done; "


@pytest.fixture(autouse=True)
def mark(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    before = zombies_of(os.getpid())  # of a ralph that another test has killed
    with nothing_left_behind(monkeypatch) as value:
        yield value
    assert set(zombies_of(os.getpid())) <= set(before)


def _sh(script: str, cwd: Path, timeout: float = 20.0) -> short.Finished:
    return short.run(["sh", "-c", script], timeout=timeout, cwd=cwd)


def test_the_output_and_the_status_are_returned(tmp_path: Path) -> None:
    assert _sh("echo out; echo err >&2; exit 3", tmp_path) == short.Finished(3, b"out\n", b"err\n")
    assert _sh("kill -9 $$", tmp_path).status == -9


def test_a_program_that_is_missing_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        short.run(["/nonexistent/program"], timeout=5)


def test_a_program_that_hangs_is_ended_at_its_deadline(tmp_path: Path, mark: str) -> None:
    began = time.monotonic()
    done = _sh("echo started; trap '' TERM; sleep 600 & wait", tmp_path, timeout=0.3)
    assert (done.status, done.stdout, done.reason) == (None, b"started\n", "no end after 0.3 s")
    assert time.monotonic() - began < 10
    assert marked(mark) == {}


def test_a_program_that_closes_its_output_and_hangs_is_ended(tmp_path: Path) -> None:
    assert _sh("exec >&- 2>&-; sleep 600", tmp_path, timeout=0.3).status is None


@pytest.mark.parametrize("output", [">/dev/null 2>&1", ""])
def test_what_it_forks_away_is_ended_and_not_waited_for(tmp_path: Path, output: str) -> None:
    began = time.monotonic()
    done = _sh(_ESCAPE.format(output) + "echo done", tmp_path)
    assert (done.status, done.stdout) == (0, b"done\n")
    assert time.monotonic() - began < 10
    assert not alive(read_pid(tmp_path / "stray"))


def test_a_program_that_forks_a_chain_is_ended(tmp_path: Path, mark: str) -> None:
    """Each process starts the next one in a new session, and exits."""
    chain = (
        "import os\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0:\n"
        "        while True:\n"
        "            if os.fork(): os._exit(0)\n"
        "            os.setsid()\n"
    )
    assert short.run([sys.executable, "-ISc", chain], timeout=20, cwd=tmp_path).status == 0
    assert marked(mark) == {}


def test_a_child_that_others_started_is_spared(tmp_path: Path) -> None:
    other = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        assert _sh("true", tmp_path).status == 0
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_programs_in_several_threads_do_not_end_each_other(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda n: _sh(f"(setsid sleep 600 &) ; sleep 0.0{n}; echo {n}", tmp_path), range(10)))
    assert [one.stdout for one in done] == [b"%d\n" % n for n in range(10)]


def test_too_much_output_ends_it(tmp_path: Path) -> None:
    done = short.run(["cat", "/dev/zero"], timeout=20, limit=1 << 20)
    assert (done.status, done.reason) == (None, "its output is too long")


def test_a_request_to_stop_ends_it(tmp_path: Path) -> None:
    began = time.monotonic()
    with interrupt.counted_by(lambda: int(time.monotonic() > began + 0.2)):
        assert _sh("sleep 600", tmp_path).reason == "interrupted"
    assert time.monotonic() - began < 10


def test_after_a_request_to_stop_a_program_still_runs(tmp_path: Path) -> None:
    with interrupt.counted_by(lambda: 1):
        assert _sh("echo last", tmp_path).stdout == b"last\n"


def test_it_does_not_outlive_a_killed_ralph(tmp_path: Path) -> None:
    script = (
        "import sys; from ralph.system import short\n"
        "short.run(['sh', '-c', 'true'], timeout=60)\n"
        "short.run(['sh', '-c', 'echo $$ > pid; sleep 600; true'], timeout=600)"
    )
    process = subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path)
    pid = read_pid(tmp_path / "pid")
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert eventually(lambda: not alive(pid))
    children.end_orphans(frozenset())  # they are ours now: nobody else waits for them
