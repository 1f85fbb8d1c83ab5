"""The keeper's protocol, and what it does when ralph is gone."""

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
from ralph.system.tree import descendants

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class KeeperClient:
    """A keeper, and the other end of its socket."""

    def __init__(self, cwd: Path) -> None:
        ours, theirs = socket.socketpair()
        self.process = subprocess.Popen(
            [sys.executable, "-ISB", keeper_module.__file__, str(theirs.fileno()), "0.2", ""],
            pass_fds=(theirs.fileno(),),
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
def keeper(mark: str, tmp_path: Path) -> Iterator[KeeperClient]:
    client = KeeperClient(tmp_path)
    yield client
    client.channel.sock.close()
    client.process.wait(30)


def test_a_command_is_started_and_ended(keeper: KeeperClient) -> None:
    keeper.spawn("exit 3")
    assert keeper.next()["ev"] == "started"
    assert keeper.next() == {"ev": "exited", "status": 3}
    keeper.channel.send({"op": "end", "grace": 1.0})
    assert keeper.next() == {"ev": "gone", "strays": [], "left": []}


def test_a_late_kill_is_not_answered(keeper: KeeperClient) -> None:
    keeper.spawn("exit 0")
    keeper.next()
    keeper.next()
    keeper.channel.send({"op": "end", "grace": 1.0})
    assert keeper.next()["ev"] == "gone"
    keeper.channel.send({"op": "kill"})
    assert keeper.silent_for(0.5)


def test_a_kill_that_arrives_with_the_end_cuts_the_grace_period_short(keeper: KeeperClient, tmp_path: Path) -> None:
    """Both can arrive in one read when the machine is busy."""
    keeper.spawn("trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done")
    keeper.next()
    read_pid(tmp_path / "pid")
    started = time.monotonic()
    os.kill(keeper.process.pid, 19)  # stopped, so that both messages arrive together
    keeper.channel.send({"op": "end", "grace": 30.0})
    keeper.channel.send({"op": "kill"})
    os.kill(keeper.process.pid, 18)
    keeper.channel.sock.settimeout(40)
    assert keeper.next() == {"ev": "exited", "status": -9}
    assert keeper.next()["ev"] == "gone"
    assert time.monotonic() - started < 25
    assert keeper.silent_for(0.3)


def test_a_kill_during_the_grace_period_cuts_it_short(keeper: KeeperClient, tmp_path: Path) -> None:
    keeper.spawn("trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done")
    keeper.next()
    read_pid(tmp_path / "pid")
    keeper.channel.send({"op": "end", "grace": 30.0})
    assert keeper.silent_for(0.3)
    keeper.channel.send({"op": "kill"})
    keeper.channel.sock.settimeout(40)
    assert keeper.next() == {"ev": "exited", "status": -9}
    assert keeper.next()["ev"] == "gone"


@pytest.mark.parametrize("number", [1, 2, 3, 15])
def test_signals_of_the_terminal_do_not_end_the_keeper(keeper: KeeperClient, number: int) -> None:
    keeper.spawn("sleep 0.4; exit 6")
    assert keeper.next()["ev"] == "started"
    os.kill(keeper.process.pid, number)
    assert keeper.next() == {"ev": "exited", "status": 6}


def test_a_closed_socket_ends_every_process_and_the_keeper(keeper: KeeperClient, tmp_path: Path) -> None:
    keeper.spawn(
        "trap '' TERM; (setsid sh -c 'trap \"\" TERM; echo $$ > stray; while :; do sleep 1; done' &); sleep 600"
    )
    keeper.next()
    stray = read_pid(tmp_path / "stray")
    keeper.channel.sock.close()
    assert keeper.process.wait(60) == 0
    assert not alive(stray)


def test_descendants_are_found_through_all_generations(mark: str, tmp_path: Path) -> None:
    child = subprocess.Popen(["bash", "-c", "bash -c 'sleep 600 & echo $! > pid; wait' & wait"], cwd=tmp_path)
    try:
        grandchild = read_pid(tmp_path / "pid")
        # The shell forks, writes the pid, and only then does its child become `sleep`.
        assert eventually(lambda: descendants(os.getpid()).get(grandchild) == "sleep")
        assert descendants(os.getpid())[child.pid] == "bash"
    finally:
        for pid in descendants(child.pid):
            os.kill(pid, 9)
        child.kill()
        child.wait()
    assert eventually(lambda: child.pid not in descendants(os.getpid()))
