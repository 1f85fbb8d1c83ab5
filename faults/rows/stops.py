"""ralph itself is stopped."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

from faults import tree
from faults.case import fault

if TYPE_CHECKING:
    from faults.place import Place

_WORKS = "ready(); work()"
#: Prints a last line and exits on SIGTERM.
_ORDERLY = """
def last(*_):
    say("last word")
    sys.exit(0)
signal.signal(signal.SIGTERM, last)
ready(); work()
"""


@fault("SIGKILL of ralph", "-9 no end · none; agent ended; next run starts")
def sigkill(at: Place) -> None:
    running = at.run(at.agent(_WORKS))
    agent = at.ready()
    time.sleep(0.5)
    running.send(signal.SIGKILL)
    code = running.ended()
    tree.settle(10)
    at.see(code, torn=True)
    at.check("agent ended", not _alive(agent))
    (at.side / "ready").unlink()
    for file in at.side.glob("*.std*"):
        file.unlink()
    again = at.run(at.agent("say('<promise>COMPLETE</promise>')")).ended()
    at.check("next run starts", again == 0, again)


@fault("SIGKILL of ralph in a flood", "-9 no end · none")
def sigkill_flood(at: Place) -> None:
    running = at.run(at.agent("ready()\nwhile True: say('x' * 900)"), stdout=subprocess.DEVNULL)
    at.ready()
    time.sleep(0.7)
    running.send(signal.SIGKILL)
    code = running.ended()
    tree.settle(10)  # the keeper still writes what is in the pipe to the journal
    at.see(code, torn=True)


@fault("SIGTERM of ralph", "143 terminated · interrupted; last output kept")
def sigterm(at: Place) -> None:
    _stopped(at, signal.SIGTERM)


@fault("SIGINT of ralph", "130 interrupted · interrupted; last output kept")
def sigint(at: Place) -> None:
    _stopped(at, signal.SIGINT)


@fault("SIGHUP of ralph", "143 terminated · interrupted; last output kept")
def sighup(at: Place) -> None:
    _stopped(at, signal.SIGHUP)


def _stopped(at: Place, number: signal.Signals) -> None:
    running = at.run(at.agent(_ORDERLY))
    at.ready()
    time.sleep(0.3)
    running.send(number)
    record = at.see(running.ended())
    raw = record.raw(1, "stdout")
    at.check("last output kept", raw is not None and raw.read_bytes().endswith(b"last word\n"))


@fault("two SIGINT, the agent ignores TERM", "130 interrupted · interrupted; at once")
def double_sigint(at: Place) -> None:
    running = at.run(at.agent("signal.signal(signal.SIGTERM, signal.SIG_IGN); ready(); work()"), "--grace", "60")
    at.ready()
    running.send(signal.SIGINT)
    time.sleep(0.5)
    began = time.monotonic()
    running.send(signal.SIGINT)
    code = running.ended()
    took = time.monotonic() - began
    at.see(code)
    at.check("at once", took < 5, f"{took:.1f} s")


@fault("SIGINT between two iterations", "130 interrupted · ok; at once")
def sigint_between(at: Place) -> None:
    running = at.run(at.agent("say('done for now'); ready()"), "--sleep", "60")
    at.ready()
    time.sleep(0.7)
    began = time.monotonic()
    running.send(signal.SIGINT)
    code = running.ended()
    took = time.monotonic() - began
    at.see(code)
    at.check("at once", took < 3, f"{took:.1f} s")


@fault("SIGINT in a wait for a limit", "130 interrupted · rate_limited; at once")
def sigint_wait(at: Place) -> None:
    limited = (
        """say('@@RALPH@@ {"type":"meta","meta":{"kind":"rate_limit","retry_after":600}}')\n"""
        """say('@@RALPH@@ {"type":"meta","meta":{"kind":"error","class":"rate_limited","message":"429"}}')\n"""
        "ready(); sys.exit(1)"
    )
    running = at.run(at.agent(limited), "--transcript", "rtf1")
    at.ready()
    time.sleep(1.0)
    began = time.monotonic()
    running.send(signal.SIGINT)
    code = running.ended()
    took = time.monotonic() - began
    at.see(code)
    at.check("at once", took < 3, f"{took:.1f} s")


@fault("SIGKILL of ralph's keeper process", "2 limit · crashed ok")
def keeper_killed(at: Place) -> None:
    agent = "say('here')\nif ITERATION == 1:\n    os.kill(os.getppid(), 9)\n    time.sleep(60)"
    at.see(at.run(at.agent(agent), "2").ended())


@fault("Ctrl-C typed on its terminal", "130 interrupted · interrupted; last output kept")
def typed(at: Place) -> None:
    master, slave = pty.openpty()
    command = at.agent(_ORDERLY)
    running = at.start("run", "--agent-cmd", command, stdin=slave, stdout=slave, stderr=slave, **_terminal(slave))
    os.close(slave)
    at.ready()
    os.set_blocking(master, False)
    os.write(master, b"\x03")
    end = time.monotonic() + 30
    while running.process.poll() is None and time.monotonic() < end:
        _drain(master)
        time.sleep(0.02)
    record = at.see(running.ended(1))
    raw = record.raw(1, "stdout")
    at.check("last output kept", raw is not None and raw.read_bytes().endswith(b"last word\n"))
    os.close(master)


@fault("its terminal goes away", "143 terminated · interrupted; last output kept")
def terminal_gone(at: Place) -> None:
    master, slave = pty.openpty()
    command = at.agent(_ORDERLY)
    running = at.start("run", "--agent-cmd", command, stdin=slave, stdout=slave, stderr=slave, **_terminal(slave))
    os.close(slave)
    os.set_blocking(master, False)
    at.ready()
    for _ in range(20):
        _drain(master)
        time.sleep(0.02)
    os.close(master)
    record = at.see(running.ended())
    raw = record.raw(1, "stdout")
    at.check("last output kept", raw is not None and raw.read_bytes().endswith(b"last word\n"))


def _terminal(slave: int) -> dict[str, Any]:
    """Makes this the controlling terminal of a new session, as for a shell."""
    import fcntl
    import termios

    return {"start_new_session": True, "preexec_fn": lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0)}


def _drain(master: int) -> None:
    try:
        while os.read(master, 65536):
            pass
    except OSError:
        pass


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
