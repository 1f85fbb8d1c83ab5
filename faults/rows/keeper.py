"""Agents that interfere with the keeper, the process that ralph starts them with."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

from faults import tree
from faults.case import NotPossibleError, fault
from ralph.journal.alive import is_directory_locked
from ralph.journal.layout import StatePaths
from ralph.system import cgroup

if TYPE_CHECKING:
    from faults.place import Place

_STOP = "os.kill(os.getppid(), signal.SIGSTOP)\n"
#: A process that escapes, and stops the keeper whenever it was continued.
_STOP_AGAIN = (
    "keeper = os.getppid()\n"
    "if background():\n"
    "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "    while True: os.kill(keeper, signal.SIGSTOP)\n"
)
#: Each process starts the next one in a new session, and exits.
_CHAIN = (
    "for _ in range(3):\n"
    "    if os.fork() == 0:\n"
    "        os.kill(keeper, signal.SIGKILL)\n"
    "        while True:\n"
    "            if os.fork(): os._exit(0)\n"
    "            os.setsid()\n"
    "            signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
)


@fault("an agent that stops ralph's keeper process", "2 limit · ok; reported")
def stops_keeper(at: Place) -> None:
    at.see(at.run(at.agent(_STOP + "say('hello')"), "1").ended())
    at.reported("had been stopped and was continued")


@fault("… and does not end", "1 failed · timeout_idle; in time")
def stops_keeper_idle(at: Place) -> None:
    began = time.monotonic()
    at.see(at.run(at.agent(_STOP + "time.sleep(300)"), "--idle-timeout", "1", "--max-failures", "1").ended())
    at.check("in time", time.monotonic() - began < 15)


@fault("… and Ctrl-C is pressed", "130 interrupted · interrupted")
def stops_keeper_interrupted(at: Place) -> None:
    running = at.run(at.agent(_STOP + "ready(); time.sleep(300)"))
    at.ready()
    running.send(signal.SIGINT)
    at.see(running.ended())


@fault("… and `ralph stop --now` is called", "130 stopped · interrupted")
def stops_keeper_stopped(at: Place) -> None:
    running = at.run(at.agent(_STOP + "ready(); time.sleep(300)"))
    at.ready()
    at.start("stop", "--now").ended()
    at.see(running.ended())


@fault("… again and again", "1 failed · timeout_wall")
def stops_keeper_again(at: Place) -> None:
    agent = at.agent(_STOP_AGAIN + "time.sleep(300)")
    at.see(at.run(agent, "--wall-timeout", "1", "--max-failures", "1").ended(50))


@fault("… and ralph is killed with SIGKILL, keeper stopped", "-9 no end · none; unlocked")
def stops_keeper_killed(at: Place) -> None:
    running = at.run(at.agent(_STOP + "ready(); time.sleep(300)"))
    at.ready()
    running.send(signal.SIGKILL)
    code = running.ended()
    tree.settle(10)
    at.see(code, torn=True)
    at.check("unlocked", not is_directory_locked(StatePaths(at.repo)))


@fault("an escaped chain of forks that kills the keeper", "1 failed · crashed")
def chain_kills_keeper(at: Place) -> None:
    agent = f"keeper = os.getppid()\nsay('here')\n{_CHAIN}time.sleep(300)"
    at.see(at.run(at.agent(agent), "--max-failures", "1").ended())


@fault("SIGKILL of ralph and its keeper, and the agent has escaped", "-9 no end · none; gone at once")
def killed_at_once(at: Place) -> None:
    group = cgroup.create()
    if group is None:
        raise NotPossibleError("no cgroup (version 2) can be created here")
    cgroup.remove(group)
    agent = (
        "open(f'{os.environ[\"FAULT_SIDE\"]}/keeper', 'w').write(str(os.getppid()))\n"
        "if background():\n"
        "    os.execve('/bin/sleep', ['sleep', '300'], {})\n"
        "time.sleep(0.2); ready(); time.sleep(300)"
    )
    running = at.run(at.agent(agent))
    at.ready()
    keeper = int((at.side / "keeper").read_text())
    running.send(signal.SIGSTOP)  # so that neither sees the other's end
    os.kill(keeper, signal.SIGKILL)
    running.send(signal.SIGKILL)
    code = running.ended()
    left = tree.settle(5)
    at.see(code, torn=True)
    at.check("gone at once", not left, left)


@fault("a version probe that forks away and hangs", "0 listed; in time; gone")
def probe_hangs(at: Place) -> None:
    folder = at.root / "bin"
    folder.mkdir()
    command = at.agent("if background():\n    time.sleep(300)\ntime.sleep(300)")
    (folder / "claude").write_text(f"#!/bin/sh\n{command}\n")
    (folder / "claude").chmod(0o755)
    at.env["PATH"] = f"{folder}:{at.env['PATH']}"
    began = time.monotonic()
    code = at.start("agents").ended()
    took = time.monotonic() - began
    at.check("0 listed", code == 0, code)
    at.check("in time", took < 25, f"{took:.1f} s")
    at.check("gone", not tree.settle(2))


@fault("rm -rf .ralph .git during an iteration, and a second run", "64 refused; 2 limit · ok")
def lock_deleted(at: Place) -> None:
    agent = "os.system('rm -rf .ralph .git'); ready(); time.sleep(2); say('done')"
    running = at.run(at.agent(agent), "1")
    at.ready()
    second = at.start("run", "--ui", "plain", "--agent-cmd", "true", "1").ended()
    at.check("64 refused", second == 64, second)
    at.see(running.ended())


@fault("a pipe where the repository should be (.git)", "0 complete · ok")
def pipe_for_git(at: Place) -> None:
    os.rename(at.repo / ".git", at.root / "git")
    os.mkfifo(at.repo / ".git")
    at.see(at.run(at.agent("say('<promise>COMPLETE</promise>')"), "1").ended())
