"""Finds the processes that a test started, by a mark in their environment that every descendant inherits."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest

MARK = "TEST_PROCESS_MARK"


def marked(value: str) -> dict[int, str]:
    """Living processes (other than this one) that carry the mark, with their command lines."""
    needle = f"{MARK}={value}".encode()
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                if needle in Path(f"/proc/{entry}/environ").read_bytes():
                    found[int(entry)] = Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:  # it has just ended
                continue
    return found


def alive(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def zombies_of(parent: int) -> list[int]:
    """Children that have ended and that nobody waited for."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                state, above = Path(f"/proc/{entry}/stat").read_bytes().rpartition(b")")[2].split()[:2]
            except OSError:
                continue
            if state == b"Z" and int(above) == parent:
                found.append(int(entry))
    return found


def eventually(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Waits until the condition is true. The limit is generous, for machines under load."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def read_pid(path: Path) -> int:
    """Waits for the process ID that a child writes to a file."""
    assert eventually(lambda: path.exists() and path.read_text().endswith("\n")), f"{path} was never written"
    return int(path.read_text())


@contextmanager
def nothing_left_behind(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Marks every process that is started inside; none of them may be alive at the end."""
    value = uuid4().hex
    monkeypatch.setenv(MARK, value)
    yield value
    gone = eventually(lambda: not marked(value), 10)
    left = marked(value)
    for pid in left:
        os.kill(pid, 9)
    assert gone, f"processes were left behind: {left}"
