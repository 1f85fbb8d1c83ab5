"""The processes below another one: finding them, stopping them, signalling them. Standard library only."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

LINUX = sys.platform.startswith("linux")
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36


def _prctl(option: int, value: int) -> None:
    if LINUX:
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def become_subreaper() -> None:
    """Orphans among this process's descendants become its children instead of init's (Linux)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def signal_when_parent_ends(number: int) -> None:
    """The kernel sends this signal to this process when its parent ends (Linux)."""
    _prctl(_PR_SET_PDEATHSIG, number)


def refuse_tracing() -> None:
    """Other processes of the same user cannot attach a debugger to this one, which would stop it (Linux)."""
    _prctl(_PR_SET_DUMPABLE, 0)


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


def names(pids: list[int]) -> list[str]:
    """The names of those of the processes that are alive."""
    return [name for pid, _, name in _processes() if pid in pids]


def _processes() -> list[tuple[int, int, str]]:
    """(pid, parent, name) of all processes that are not zombies."""
    return _from_proc() if LINUX else _from_ps()


def _from_ps() -> list[tuple[int, int, str]]:
    import subprocess

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


def children() -> list[int]:
    """The children of this process, even those that have ended and that nobody has waited for."""
    found: set[int] = set()
    try:
        for _ in range(3):  # the kernel may skip one if another one ends meanwhile
            for thread in os.listdir("/proc/self/task"):
                with open(f"/proc/self/task/{thread}/children", "rb") as listing:
                    found.update(map(int, listing.read().split()))
    except OSError:  # not Linux, or a kernel without this list
        return [pid for pid, parent, _ in _processes() if parent == os.getpid()]
    return sorted(found)


def kill_children(kept: Collection[int] = ()) -> list[int]:
    """Kills the children of this process, except `kept`. Returns those that it found.

    The caller is a subreaper and repeats it: children of a killed process become ours. No scan of the process table is
    as quick, and quickness counts against a process that forks a child and exits, again and again.
    """
    found = [pid for pid in children() if pid not in kept]
    for pid in found:
        _kill_group(pid)
    if not LINUX:
        for pid in found:
            signal_all(list(_freeze(pid, time.monotonic() + 1.0)), signal.SIGKILL)
    signal_all(found, signal.SIGKILL)
    return found


def _kill_group(pid: int) -> None:
    """Kills the process group of a process if it is in a session of its own.

    Nothing in a group can fork itself out of this signal: the kernel delivers it to all of the group at once.
    """
    with contextlib.suppress(OSError):
        if os.getsid(pid) != os.getsid(0):
            os.killpg(os.getpgid(pid), signal.SIGKILL)


def state_of(pid: int) -> str:
    """The state of a process: `T` is stopped, `t` is stopped by a debugger, `Z` has ended. Empty if unknown."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0].decode()
    except (OSError, IndexError):
        return ""


def _freeze(root: int, deadline: float) -> dict[int, str]:
    """Stops every process below `root`, repeating until a scan finds no new one. A stopped process cannot fork."""
    frozen: dict[int, str] = {}
    while True:
        new = {pid: name for pid, name in descendants(root).items() if pid not in frozen}
        if not new or time.monotonic() >= deadline:
            return frozen | new
        signal_all(list(new), signal.SIGSTOP)
        frozen.update(new)
