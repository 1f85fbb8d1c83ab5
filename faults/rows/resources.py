"""Scarce resources: open files, processes, memory; and several runs in one directory."""

from __future__ import annotations

import os
import resource
import signal
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from faults import tree
from faults.case import NotPossibleError, fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from faults.place import Place


@fault("two runs at once", "second: 64; reported; 2 limit · ok")
def two_runs(at: Place) -> None:
    first = at.run(at.agent("say('here'); ready(); time.sleep(2)"), "1")
    at.ready()
    second = at.run("echo second", "1").ended()
    at.check(f"second: {second}", True)
    at.reported("a run is already active in this directory")
    at.see(first.ended())


@fault("eight runs started at the same moment", "one ran, the others: 64")
def many_runs(at: Place) -> None:
    agent = at.agent("say('here'); time.sleep(3)")
    codes = sorted(running.ended() for running in [at.run(agent, "1") for _ in range(8)])
    at.no_bug()
    at.check("one ran, the others: 64", codes == [2, *[64] * 7], codes)


@fault("too few open files, from 8 to 40", "a clear end each time")
def few_files(at: Place) -> None:
    agent = at.agent("say('here')")
    wrong = {}
    for limit in range(8, 41, 1 if not at.short else 4):
        code = at.run(agent, "1", preexec_fn=_limit(resource.RLIMIT_NOFILE, limit)).ended()
        if code not in (1, 2):
            wrong[limit] = code
    at.no_bug()
    at.check("a clear end each time", not wrong, wrong)


@fault("open files run out during the run", "1 failed · ok; reported")
def files_run_out(at: Place) -> None:
    running = at.run(at.agent("say('here'); ready(); time.sleep(2)"), "3")
    at.ready()
    used = len(os.listdir(f"/proc/{running.pid}/fd"))
    resource.prlimit(running.pid, resource.RLIMIT_NOFILE, (used - 3, used - 3))
    at.see(running.ended())
    at.reported("Too many open files")


@fault("no more processes", "clear ends; reported")
def no_processes(at: Place) -> None:
    """Uses a control group: root is exempt from a user's limit."""
    agent = at.agent("say('here')")
    codes = []
    with _group() as (limit, members):
        for most in (1, 2):  # with 3 it is bash that cannot fork, and it retries for 15 s
            limit.write_text(f"{most}\n")
            join = lambda: members.write_text("0\n")  # noqa: E731
            codes.append(at.run(agent, "1", "--max-failures", "1", preexec_fn=join).ended())
    at.no_bug()
    at.check("clear ends", all(code in (1, 2) for code in codes) and 1 in codes, codes)
    at.reported("Resource temporarily unavailable")


@contextmanager
def _group() -> Iterator[tuple[Path, Path]]:
    """A control group: the file that limits it and the file that adds a process to it."""
    for place in (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup")):
        folder = place / f"ralph-fault-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            if (folder / "pids.max").exists():
                yield folder / "pids.max", folder / "cgroup.procs"
                tree.settle(10)
                return
        finally:
            folder.rmdir()
    raise NotPossibleError("no control group for processes is available")


def _limit(what: int, value: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(what, (value, value))


@fault("memory runs out (a line of 60 MB, 160 MB of memory)", "1 failed · none; reported")
def no_memory(at: Place) -> None:
    agent = at.agent("for _ in range(60): out(b'\\xff' * 1000000)\nsay('')\nwork()")
    running = at.run(agent, "1", preexec_fn=_limit(resource.RLIMIT_AS, 160_000_000))
    at.see(running.ended())
    at.lost = None  # it ran out of memory in the middle of the output
    at.reported("memory")


@fault("ralph is stopped for 4 s, with an idle deadline of 3 s", "2 limit · ok")
def ralph_stopped(at: Place) -> None:
    running = at.run(at.agent("ready(); work(6)"), "1", "--idle-timeout", "3")
    at.ready()
    running.send(signal.SIGSTOP)
    time.sleep(4)
    running.send(signal.SIGCONT)
    at.see(running.ended())
