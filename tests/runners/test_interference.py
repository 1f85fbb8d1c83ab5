"""An agent that stops, kills or traces the keeper: deadlines and stops still work, and nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from processes import alive, eventually, marked, read_pid
from ralph.journal.lock import is_locked
from ralph.runners.process import EndKind
from ralph.system import cgroup, children

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from runners.conftest import Runner

_STOP = "kill -STOP $PPID; "
#: A process that escapes and stops the keeper whenever it was continued.
_STOP_AGAIN = "(keeper=$PPID; setsid sh -c \"trap '' TERM; while kill -STOP $keeper; do :; done\" &) ; "
#: Each process starts the next one in a new session, kills the keeper, and exits.
_CHAIN = """
import os, signal, sys
keeper = os.getppid()
print("up", flush=True)
for _ in range(3):
    if os.fork() == 0:
        os.kill(keeper, signal.SIGKILL)
        while True:
            if os.fork(): os._exit(0)
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.pause()
"""
_TRACE = """
import ctypes, os, time
print(ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0), flush=True)  # PTRACE_ATTACH
time.sleep(600)
"""
# ralph, for those who kill it: the lock is a file that the keeper holds, too.
_RALPH = """
import fcntl, os, sys
from ralph.runners.process import Command, Deadlines, Supervisor
from ralph.runners.stop import StopSwitch
from runners.conftest import CollectingSink
if os.environ.get("WITHOUT_CGROUP"):
    from ralph.system import cgroup
    cgroup.create = lambda: None
lock = os.open("lock", os.O_RDWR | os.O_CREAT)
fcntl.flock(lock, fcntl.LOCK_EX)
with StopSwitch() as stop, Supervisor(stop, locks=(lock,)) as supervisor:
    supervisor.run(Command(["bash", "-c", sys.argv[1]], dict(os.environ), os.getcwd()), CollectingSink(), Deadlines())
"""


@pytest.fixture
def without_cgroup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "create", lambda: None)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A keeper that does not answer is given up sooner."""
    monkeypatch.setattr("ralph.runners.heartbeat.UNRESPONSIVE", 1.5)
    monkeypatch.setattr("ralph.runners.heartbeat.ENDING", 1.5)


def test_a_stopped_keeper_is_continued_and_the_exit_is_seen(runner: Runner) -> None:
    ended = runner.bash(_STOP + "echo said; exit 3")
    assert (ended.kind, ended.status, runner.sink.out) == (EndKind.EXITED, 3, b"said\n")
    assert ended.keeper == "had been stopped and was continued"


@pytest.mark.parametrize(("limit", "kind"), [("idle", EndKind.IDLE), ("wall", EndKind.WALL)])
def test_deadlines_hold_while_the_keeper_is_stopped(runner: Runner, mark: str, limit: str, kind: EndKind) -> None:
    ended = runner.bash(_STOP + "sleep 600", **{limit: 0.3})
    assert ended.kind is kind
    assert marked(mark).keys() <= {runner.supervisor._keeper.pid if runner.supervisor._keeper else 0}


def test_a_signal_stops_the_run_while_the_keeper_is_stopped(runner: Runner) -> None:
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()
    assert runner.bash(_STOP + "sleep 600").kind is EndKind.STOPPED


@pytest.mark.endurance
@pytest.mark.usefixtures("quick")
def test_a_keeper_that_is_stopped_again_and_again_is_given_up(runner: Runner, mark: str) -> None:
    ended = runner.bash(_STOP_AGAIN + "sleep 600", wall=0.5)
    assert ended.kind is EndKind.WALL
    assert marked(mark).keys() <= {runner.supervisor._keeper.pid if runner.supervisor._keeper else 0}
    assert runner.bash("echo again").status == 0


@pytest.mark.usefixtures("quick")
def test_a_keeper_that_is_held_by_a_debugger_is_given_up(runner: Runner, mark: str, tmp_path: Path) -> None:
    """Only root can attach to it; for everyone else, this is an agent that hangs."""
    (tmp_path / "trace.py").write_text(_TRACE)
    ended = runner.run(sys.executable, "-ISB", "trace.py", wall=1.0)
    assert ended.kind is EndKind.WALL
    assert runner.sink.out == (b"0\n" if os.geteuid() == 0 else b"-1\n")
    assert marked(mark).keys() <= {runner.supervisor._keeper.pid if runner.supervisor._keeper else 0}


@pytest.mark.usefixtures("without_cgroup")
def test_a_chain_of_forks_that_kills_the_keeper_is_ended(runner: Runner, mark: str, tmp_path: Path) -> None:
    (tmp_path / "chain.py").write_text(_CHAIN)
    ended = runner.run(sys.executable, "-IS", "chain.py")
    assert (ended.kind, ended.left) == (EndKind.LOST, ())
    assert marked(mark) == {}


def test_a_program_of_ours_survives_the_end_of_the_orphans(runner: Runner) -> None:
    """The filter of a driver runs in a jq that ralph itself has started."""
    helper = children.start(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        ended = runner.bash("(setsid sleep 600 &) ; kill -KILL $PPID; sleep 600")
        assert ended.kind is EndKind.LOST
        assert helper.poll() is None
    finally:
        children.finish(helper)
        helper.stdin.close()
        helper.stdout.close()


@pytest.mark.usefixtures("quick")
def test_closing_ends_a_stopped_keeper(runner: Runner) -> None:
    runner.bash("true")
    keeper = runner.supervisor._keeper
    assert keeper is not None
    os.kill(keeper.pid, signal.SIGSTOP)
    runner.supervisor.close()
    assert not alive(keeper.pid)


# -- ralph is killed, too


@pytest.fixture
def killed(mark: str, tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    children.end_orphans(frozenset())  # they are ours now: nobody else waits for them


def _killed_ralph(at: Path, script: str) -> None:
    """Starts a ralph, waits for the file `ready`, and kills it."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, "-c", _RALPH, script], cwd=at, env=env)
    assert eventually((at / "ready").exists)
    process.kill()
    process.wait()


@pytest.mark.parametrize("attack", [_STOP, _STOP_AGAIN], ids=["once", "again and again"])
def test_a_killed_ralph_with_a_stopped_keeper_leaves_nothing_and_frees_the_lock(
    killed: Path, mark: str, attack: str
) -> None:
    _killed_ralph(killed, attack + "(setsid sleep 600 &) ; touch ready; sleep 600")
    assert eventually(lambda: not marked(mark), 30)
    assert eventually(lambda: not is_locked(killed / "lock"))


@pytest.mark.parametrize("grouped", [True, False], ids=["in a cgroup", "without one"])
def test_ralph_and_the_keeper_killed_at_once_leave_nothing(
    killed: Path, mark: str, monkeypatch: pytest.MonkeyPatch, grouped: bool
) -> None:
    """In a cgroup it is found even if it has emptied its environment."""
    if grouped:
        _require_cgroup()
    else:
        monkeypatch.setenv("WITHOUT_CGROUP", "1")
    stray = f"setsid {'env -i ' if grouped else ''}sh -c 'echo $$ > stray; exec sleep 600'"
    script = f"echo $PPID > keeper; ({stray} &) ; while [ ! -s stray ]; do :; done; "
    _killed_ralph(killed, script + "kill -STOP $PPID; touch ready; sleep 600")
    with suppress(ProcessLookupError):  # it may have ended already
        os.kill(read_pid(killed / "keeper"), signal.SIGKILL)
    assert eventually(lambda: not alive(read_pid(killed / "stray")))
    assert eventually(lambda: not marked(mark))


def _require_cgroup() -> None:
    group = cgroup.create()
    if group is None:
        pytest.skip("this machine has no cgroups (version 2) that this user may create")
    cgroup.remove(group)


def test_a_chain_of_forks_dies_with_its_cgroup(runner: Runner, mark: str, tmp_path: Path) -> None:
    _require_cgroup()
    (tmp_path / "chain.py").write_text(_CHAIN)
    began = time.monotonic()
    assert runner.run(sys.executable, "-IS", "chain.py").left == ()
    assert time.monotonic() - began < 10
    assert marked(mark) == {}
