"""However a command ends, every process it started is gone."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from processes import alive, eventually, marked, read_pid
from ralph.runners.process import EndKind
from runners.conftest import CollectingSink

if TYPE_CHECKING:
    from pathlib import Path

    from runners.conftest import Runner

# Forks twice, leaves the session, clears its environment, closes its descriptors: what a daemon does.
_DAEMON = """
import os, sys
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
with open("daemon.tmp", "w") as file:
    file.write(f"{os.getpid()}\\n")
os.rename("daemon.tmp", "daemon")
for fd in range(3 if len(sys.argv) > 1 else 0, 64):
    try:
        os.close(fd)
    except OSError:
        pass
os.execve("/bin/sh", ["sh", "-c", "trap '' TERM HUP; while :; do sleep 1; done"], {})
"""


def test_children_are_ended_with_their_parent(runner: Runner, mark: str) -> None:
    ended = runner.bash("sleep 600 & sleep 600 & echo up; wait", idle=0.3)
    assert ended.kind is EndKind.IDLE
    assert marked(mark).keys() <= _keepers(runner)


def test_a_child_in_another_session_is_ended(runner: Runner, mark: str) -> None:
    ended = runner.run("bash", "-c", "trap '' TERM; (setsid sleep 600 &) ; sleep 600", idle=0.3)
    assert ended.kind is EndKind.IDLE
    assert marked(mark).keys() <= _keepers(runner)


def test_processes_left_by_a_finished_command_are_ended_and_named(runner: Runner, mark: str) -> None:
    ended = runner.bash("sleep 600 >/dev/null 2>&1 & exit 0")
    assert (ended.kind, ended.status) == (EndKind.EXITED, 0)
    assert ended.strays in (("sleep",), ("bash",))  # it may not have called exec yet
    assert marked(mark).keys() <= _keepers(runner)


def test_a_daemon_with_a_cleared_environment_is_found(runner: Runner, tmp_path: Path) -> None:
    script = tmp_path / "daemon.py"
    script.write_text(_DAEMON)
    ended = runner.bash(f"{sys.executable} daemon.py; while [ ! -e daemon ]; do sleep 0.02; done; exit 0")
    assert (ended.kind, ended.status) == (EndKind.EXITED, 0)
    assert ended.strays != ()
    assert not alive(read_pid(tmp_path / "daemon"))


def test_a_stray_that_holds_the_pipe_does_not_block(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "daemon.py").write_text(_DAEMON)
    ended = runner.bash(f"{sys.executable} daemon.py keep; while [ ! -e daemon ]; do sleep 0.02; done; echo said")
    assert (ended.kind, ended.status, runner.sink.out) == (EndKind.EXITED, 0, b"said\n")
    assert not alive(read_pid(tmp_path / "daemon"))


def test_a_stray_that_keeps_printing_does_not_block(runner: Runner) -> None:
    ended = runner.bash("(while :; do echo noise; sleep 0.05; done) & echo first; exit 0")
    assert (ended.kind, ended.status) == (EndKind.EXITED, 0)
    assert runner.sink.out.startswith((b"first\n", b"noise\n"))


def test_a_program_that_forks_quickly_is_ended(runner: Runner, mark: str) -> None:
    script = "trap '' TERM; f() { sleep 0.02; f & }; f & f & f & echo up; sleep 600"
    ended = runner.bash(script, wall=0.5, grace=0.1)
    assert (ended.kind, ended.left) == (EndKind.WALL, ())
    assert marked(mark).keys() <= _keepers(runner)


def test_a_command_that_was_ended_reports_no_strays(runner: Runner) -> None:
    """Children of a command that had to be ended are expected."""
    assert runner.bash("sleep 600 & wait", idle=0.2).strays == ()


@pytest.mark.parametrize("script", ["sleep 600", "(setsid sleep 600 &); sleep 600", "trap '' TERM; sleep 600 & wait"])
def test_a_killed_keeper_takes_its_agent_along_and_the_next_run_works(runner: Runner, mark: str, script: str) -> None:
    def kill_keeper() -> None:
        keeper = runner.supervisor._keeper
        assert keeper is not None
        os.kill(keeper.pid, signal.SIGKILL)

    sink = CollectingSink(on_output=kill_keeper)
    ended = runner.bash(f"echo up; {script}", sink=sink)
    assert ended.kind is EndKind.LOST
    assert sink.out == b"up\n"
    assert eventually(lambda: not marked(mark))
    assert runner.bash("echo again").status == 0
    assert runner.sink.out == b"again\n"


def test_a_keeper_killed_between_two_commands_is_replaced(runner: Runner) -> None:
    assert runner.bash("true").status == 0
    keeper = runner.supervisor._keeper
    assert keeper is not None
    os.kill(keeper.pid, signal.SIGKILL)
    keeper.process.wait()
    ended = runner.bash("echo again")
    assert (ended.kind, ended.status, runner.sink.out) == (EndKind.EXITED, 0, b"again\n")


def test_closing_twice_is_harmless(runner: Runner) -> None:
    runner.bash("true")
    runner.supervisor.close()
    runner.supervisor.close()


def _keepers(runner: Runner) -> set[int]:
    keeper = runner.supervisor._keeper
    return {keeper.pid} if keeper else set()
