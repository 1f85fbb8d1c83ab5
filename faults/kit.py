"""The building blocks of the suite's agents. It is copied next to each agent and imports nothing from ralph.

An agent writes each byte to ralph first and then to a side file: what is in the side file must be in the journal.
"""

import os
import signal
import sys
import time

ITERATION = int(os.environ.get("RALPH_ITERATION", "0"))
_SIDE = os.environ["FAULT_SIDE"]
_kept: dict[int, int] = {}
_HANDLED = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}

__all__ = ["ITERATION", "background", "err", "os", "out", "ready", "say", "signal", "sys", "time", "work"]


def _write(fd: int, data: bytes) -> None:
    if fd not in _kept:
        name = f"{_SIDE}/{ITERATION:04d}.{'stdout' if fd == 1 else 'stderr'}"
        _kept[fd] = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    while data:
        # A handler that prints between the two writes would note its words in another order than ralph reads them.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
        try:
            size = os.write(fd, data[: 1 << 16])
            os.write(_kept[fd], data[:size])
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        data = data[size:]


def out(data: bytes) -> None:
    _write(1, data)


def err(data: bytes) -> None:
    _write(2, data)


def say(text: str) -> None:
    out(text.encode() + b"\n")


def ready() -> None:
    """Tells the suite that the agent has reached this point."""
    with open(f"{_SIDE}/ready.new", "w") as file:
        file.write(f"{os.getpid()}\n")
    os.rename(f"{_SIDE}/ready.new", f"{_SIDE}/ready")


def work(seconds: float = 300.0) -> None:
    """Prints a line ten times a second."""
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        number += 1
        say(f"working {number}")
        time.sleep(0.1)


def background(code: int = 0) -> bool:
    """Forks twice into a new session. Returns True in the process that escaped."""
    if os.fork():
        os.wait()
        return False
    os.setsid()
    if os.fork():
        os._exit(code)
    return True
