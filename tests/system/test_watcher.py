"""The watcher can be stopped or killed, like every process of the user; ralph does not depend on it."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ralph.system import short, watcher

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def pid() -> Iterator[int]:
    short.run(["true"], timeout=20)
    process = watcher._watcher._process
    assert process is not None
    yield process.pid
    assert short.run(["echo", "still"], timeout=20).stdout == b"still\n"


def test_a_killed_watcher_is_replaced(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    short.run(["true"], timeout=20)
    process = watcher._watcher._process
    assert process is not None
    assert process.pid != pid
    assert process.poll() is None


def test_a_stopped_watcher_does_not_block(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    for _ in range(40_000):  # more than a pipe holds
        watcher.tell("-")


def test_the_mark_reaches_the_program(pid: int) -> None:
    assert b"_RALPH_WATCHED=" in short.run(["env"], timeout=20, env={"PATH": os.environ["PATH"]}).stdout


def test_the_watcher_survives_an_agent_that_ends_ralph_by_name(pid: int) -> None:
    """`pkill -f ralph` ends ralph and its keeper at once."""
    assert b"ralph" not in Path(f"/proc/{pid}/cmdline").read_bytes()
