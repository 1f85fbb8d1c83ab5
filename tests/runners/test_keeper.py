"""The keeper by its own protocol, and what it does when ralph is gone."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from processes import alive, eventually, read_pid
from ralph.runners import keeper as keeper_module
from ralph.runners.channel import Channel
from ralph.runners.tree import descendants

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Talk:
    """One keeper, spoken to directly."""

    def __init__(self, cwd: Path) -> None:
        ours, theirs = socket.socketpair()
        self.process = subprocess.Popen(
            [sys.executable, "-ISB", keeper_module.__file__, str(theirs.fileno()), "0.2"], pass_fds=(theirs.fileno(),)
        )
        theirs.close()
        ours.settimeout(20)
        self.channel = Channel(ours)
        self.cwd = cwd
        self._pending: list[dict[str, object]] = []

    def spawn(self, script: str) -> None:
        fd = os.open(os.devnull, os.O_RDWR)
        message = {"op": "spawn", "argv": ["bash", "-c", script], "env": dict(os.environ), "cwd": str(self.cwd)}
        self.channel.send(message, (fd, fd, fd))
        os.close(fd)

    def next(self) -> dict[str, object]:
        while not self._pending:
            received = self.channel.receive()
            assert received is not None, "the keeper is gone"
            self._pending += received[0]
        return self._pending.pop(0)

    def silent_for(self, seconds: float) -> bool:
        self.channel.sock.settimeout(seconds)
        try:
            return not self._pending and self.channel.receive() is None
        except TimeoutError:
            return True
        finally:
            self.channel.sock.settimeout(20)


@pytest.fixture
def talk(mark: str, tmp_path: Path) -> Iterator[Talk]:
    conversation = Talk(tmp_path)
    yield conversation
    conversation.channel.sock.close()
    conversation.process.wait(30)


def test_a_command_from_its_start_to_its_end(talk: Talk) -> None:
    talk.spawn("exit 3")
    assert talk.next()["ev"] == "started"
    assert talk.next() == {"ev": "exited", "status": 3}
    talk.channel.send({"op": "end", "grace": 1.0})
    assert talk.next() == {"ev": "gone", "strays": [], "left": []}


def test_a_kill_that_comes_too_late_is_not_answered(talk: Talk) -> None:
    talk.spawn("exit 0")
    talk.next()
    talk.next()
    talk.channel.send({"op": "end", "grace": 1.0})
    assert talk.next()["ev"] == "gone"
    talk.channel.send({"op": "kill"})
    assert talk.silent_for(0.5)


def test_a_kill_that_comes_with_the_end_cuts_the_grace_short(talk: Talk, tmp_path: Path) -> None:
    """Both can arrive in one read when the machine is busy."""
    talk.spawn("trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done")
    talk.next()
    read_pid(tmp_path / "pid")
    started = time.monotonic()
    os.kill(talk.process.pid, 19)  # stopped, so that both messages wait for it
    talk.channel.send({"op": "end", "grace": 30.0})
    talk.channel.send({"op": "kill"})
    os.kill(talk.process.pid, 18)
    talk.channel.sock.settimeout(40)
    assert talk.next() == {"ev": "exited", "status": -9}
    assert talk.next()["ev"] == "gone"
    assert time.monotonic() - started < 25
    assert talk.silent_for(0.3)


def test_a_kill_during_the_grace_cuts_it_short(talk: Talk, tmp_path: Path) -> None:
    talk.spawn("trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done")
    talk.next()
    read_pid(tmp_path / "pid")
    talk.channel.send({"op": "end", "grace": 30.0})
    assert talk.silent_for(0.3)
    talk.channel.send({"op": "kill"})
    talk.channel.sock.settimeout(40)
    assert talk.next() == {"ev": "exited", "status": -9}
    assert talk.next()["ev"] == "gone"


@pytest.mark.parametrize("number", [1, 2, 3, 15])
def test_the_signals_of_a_terminal_do_not_end_it(talk: Talk, number: int) -> None:
    talk.spawn("sleep 0.4; exit 6")
    assert talk.next()["ev"] == "started"
    os.kill(talk.process.pid, number)
    assert talk.next() == {"ev": "exited", "status": 6}


def test_when_its_socket_closes_it_ends_everything_and_then_itself(talk: Talk, tmp_path: Path) -> None:
    talk.spawn("trap '' TERM; (setsid sh -c 'trap \"\" TERM; echo $$ > stray; while :; do sleep 1; done' &); sleep 600")
    talk.next()
    stray = read_pid(tmp_path / "stray")
    talk.channel.sock.close()
    assert talk.process.wait(60) == 0
    assert not alive(stray)


def test_descendants_are_found_through_all_generations(mark: str, tmp_path: Path) -> None:
    child = subprocess.Popen(["bash", "-c", "bash -c 'sleep 600 & echo $! > pid; wait' & wait"], cwd=tmp_path)
    try:
        grandchild = read_pid(tmp_path / "pid")
        below = descendants(os.getpid())
        assert below[child.pid] == "bash"
        assert below[grandchild] == "sleep"
    finally:
        for pid in descendants(child.pid):
            os.kill(pid, 9)
        child.kill()
        child.wait()
    assert eventually(lambda: child.pid not in descendants(os.getpid()))
