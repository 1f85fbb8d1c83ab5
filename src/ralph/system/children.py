"""The programs that this process has started itself, and ending what they leave behind."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ralph.system import tree

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet
    from types import TracebackType

_KILL_WAIT = 5.0
_lock = threading.Lock()
#: what we started and still need, by process ID: ending orphans must spare it
_ours: dict[int, subprocess.Popen[bytes]] = {}
#: one entry for each `no_orphans` block, and our children before the first of them
_blocks: list[int] = []
_before: list[int] = []


def start(argv: list[str], **options: Any) -> subprocess.Popen[bytes]:
    """Starts a program in a session of its own. It counts as ours until `finish`. `options` are those of Popen."""
    with _lock:
        process = subprocess.Popen(argv, start_new_session=True, **options)
        _ours[process.pid] = process
    return process


def finish(process: subprocess.Popen[bytes]) -> int:
    """Kills a program of ours if it still runs, and its process group. Returns its exit status.

    One that hangs in the kernel (a network file system that is gone) is given up.
    """
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        status = process.wait(_KILL_WAIT)
    except subprocess.TimeoutExpired:
        return -signal.SIGKILL
    with _lock:
        _ours.pop(process.pid, None)
    return status


def begin() -> frozenset[int]:
    """From now on, orphans among our descendants become our children. Returns the children that are not orphans."""
    tree.become_subreaper()
    return frozenset(tree.children())


class no_orphans:  # noqa: N801 - a context manager that reads like a function
    """Ends the orphans of all programs that are started in `with` blocks like this one, at the end of the last block.

    Several threads may be in one: whose orphan a process is cannot be told.
    """

    def __enter__(self) -> None:
        with _lock:
            if not _blocks:
                _before[:] = begin()
            _blocks.append(1)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _lock:
            _blocks.pop()
            last = not _blocks
            before = frozenset(_before)
        if last:
            end_orphans(before)


def end_orphans(before: AbstractSet[int], seconds: float = 5.0) -> tuple[str, ...]:
    """Kills all processes below us except those that we started ourselves and those that existed `before`.

    Returns the names of those that cannot be killed.
    """
    deadline = time.monotonic() + seconds
    pause, last = 0.0005, [0]
    while True:
        with _lock:  # a program that another thread is starting is not an orphan
            spared = {*before, *_ours, *_same_session()}
            seen = tree.kill_children(spared)
            found = [pid for pid in seen if not _reaped(pid)]
        if not seen:  # not `found`: one that has just ended may have left us a child
            return ()
        if time.monotonic() >= deadline:
            return tuple(sorted(tree.names(found)))
        if found and found == last:  # they take a moment to end
            time.sleep(pause)
            pause = min(pause * 2, 0.02)
        last = found


def _same_session() -> list[int]:
    """Children in our own session: what we start gets one of its own, so others in this process started them."""
    found = []
    for pid in tree.children():
        with suppress(OSError):
            if os.getsid(pid) == os.getsid(0):
                found.append(pid)
    return found


def _reaped(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True
