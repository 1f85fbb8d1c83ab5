"""Finds the processes that a fault leaves behind.

This process is a subreaper: it inherits every descendant that loses its parent, however that one forked and whatever it
did to its environment. So the processes below this one are all that is left.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "this system has no subreapers")


def below(root: int | None = None) -> dict[int, str]:
    """Living descendants of a process (by default, this one), with their command lines."""
    parents: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                state, parent = Path(f"/proc/{entry}/stat").read_bytes().rpartition(b")")[2].split()[:2]
            except OSError:  # it ended while we looked
                continue
            if state not in (b"Z", b"X"):
                parents[int(entry)] = int(parent)
    top = os.getpid() if root is None else root
    found: dict[int, str] = {}
    for pid in parents:
        above = pid
        while above in parents and above != top:
            above = parents[above]
        if above == top and pid != top:
            found[pid] = _command(pid)
    return found


def settle(seconds: float) -> dict[int, str]:
    """Waits until no process is left, at most this long; returns those that are."""
    end = time.monotonic() + seconds
    while True:
        _reap()
        left = below()
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.02)


def end_all() -> None:
    """Kills all that is left, so that the suite itself leaves nothing behind."""
    for _ in range(200):
        left = below()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _reap()
        if not left:
            return
        time.sleep(0.02)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return "?"
