"""The processes below another one: finding them, stopping them, signalling them. Standard library only."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time

LINUX = sys.platform.startswith("linux")
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def _prctl(option: int, value: int) -> None:
    if LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def become_subreaper() -> None:
    """Orphans among this process's descendants become its children instead of init's (Linux)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """The kernel kills this process when its parent ends (Linux)."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def descendants(root: int) -> dict[int, str]:
    """The name of every living process below `root`, by pid."""
    parents: dict[int, int] = {}
    labels: dict[int, str] = {}
    for pid, parent, name in _processes():
        parents[pid] = parent
        labels[pid] = name
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    found: dict[int, str] = {}
    queue = list(children.get(root, []))
    while queue:
        pid = queue.pop()
        if pid not in found:
            found[pid] = labels[pid]
            queue.extend(children.get(pid, []))
    return found


def _processes() -> list[tuple[int, int, str]]:
    """(pid, parent, name) of all processes that are not zombies."""
    return _from_proc() if LINUX else _from_ps()


def _from_ps() -> list[tuple[int, int, str]]:
    rows: list[tuple[int, int, str]] = []
    listing = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,state=,comm="], capture_output=True, text=True, check=False)
    for line in listing.stdout.splitlines():
        fields = line.split(None, 3)
        if len(fields) == 4 and not fields[2].startswith("Z"):
            rows.append((int(fields[0]), int(fields[1]), fields[3]))
    return rows


def _from_proc() -> list[tuple[int, int, str]]:
    rows: list[tuple[int, int, str]] = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as stat:
                head, _, rest = stat.read().rpartition(b")")
        except OSError:  # it ended during the scan
            continue
        state, parent = rest.split()[:2]
        if state not in (b"Z", b"X"):
            rows.append((int(entry), int(parent), head.partition(b"(")[2].decode("utf-8", "replace")))
    return rows


def signal_all(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def freeze(root: int, deadline: float) -> dict[int, str]:
    """Stops every process below `root`, repeating until a scan finds no new one. A stopped process cannot fork."""
    frozen: dict[int, str] = {}
    while True:
        new = {pid: name for pid, name in descendants(root).items() if pid not in frozen}
        if not new or time.monotonic() >= deadline:
            return frozen | new
        signal_all(list(new), signal.SIGSTOP)
        frozen.update(new)
