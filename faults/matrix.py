"""Runs many faults, several at a time, each in its own process with a time limit."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import msgspec

from faults.table import Row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from faults.case import Fault

#: Extra time after a fault's bound, to end its processes and look for more.
_EXTRA = 30.0


def run(chosen: Sequence[Fault], *, short: bool, jobs: int) -> list[Row]:
    """The rows, in the order of the faults. Long faults start first."""
    order = sorted(range(len(chosen)), key=lambda i: -chosen[i].bound)
    rows: dict[int, Row] = {}

    def one(index: int) -> None:
        row = rows[index] = _bounded(chosen[index], short=short)
        sign = {True: "ok", False: "WRONG", None: "not possible here"}[row.good]
        sys.stderr.write(f"{row.seconds:6.1f} s  {row.name}: {sign if row.good is not False else row.seen}\n")

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, order))
    return [rows[index] for index in range(len(chosen))]


def _bounded(one: Fault, *, short: bool) -> Row:
    expected = one.expectation(short=short)
    space = mount_space() if one.mounts else []
    if space is None:
        return Row(one.name, expected, "not possible here: mounting is not allowed", None, None, 0, 0.0)
    started = time.monotonic()
    argv = [*space, sys.executable, "-m", "faults.one", one.name, "short" if short else "full"]
    # A session of its own: Ctrl-C reaches only the suite, which then ends the workers.
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as worker:
        try:
            output, failure = worker.communicate(timeout=one.bound + _EXTRA)
        except BaseException:
            os.killpg(worker.pid, signal.SIGKILL)
            output, failure = worker.communicate()
            if not isinstance(sys.exc_info()[1], subprocess.TimeoutExpired):
                raise
    try:
        return msgspec.json.decode(output, type=Row)
    except msgspec.DecodeError:
        seconds = time.monotonic() - started
        seen = f"hang: {failure[-300:].decode('utf-8', 'replace')}"
        return Row(one.name, expected, seen, False, None, 0, seconds)


@functools.cache
def mount_space() -> list[str] | None:
    """The prefix that gives a command its own mount namespace; None if that is not allowed."""
    for space in (["unshare", "-m", "--"], ["unshare", "-U", "-r", "-m", "--"]):
        try:
            done = subprocess.run(
                [*space, "sh", "-c", "mount -t tmpfs -o size=64k tmpfs /mnt"], capture_output=True, timeout=10
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return space
    return None
