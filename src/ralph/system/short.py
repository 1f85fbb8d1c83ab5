"""Running a short program, such as git or a version probe, and collecting its output.

It has a deadline, it can be interrupted, and nothing of it is left: not what it forked away, and not after a `kill -9`
of ralph (`watcher`).
"""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from typing import TYPE_CHECKING

import msgspec

from ralph.system import children, interrupt, watcher

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

#: More than `git status` prints for a million files.
_MAX_OUTPUT = 256 << 20
#: How often to look whether it has exited while something that it started holds its output open.
_POLL = 0.05
#: How long to read the output of a program that has exited, while something that it started holds it open.
_DRAIN = 0.2
#: The user wants to stop: what runs afterwards, to report what happened, must be quick.
_HURRY = 3.0


class Finished(msgspec.Struct, frozen=True):
    """How a program ended. `status` is None if it had to be ended, and `reason` then says why."""

    status: int | None
    stdout: bytes
    stderr: bytes
    reason: str = ""


def run(
    argv: list[str],
    *,
    timeout: float,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    limit: int = _MAX_OUTPUT,
) -> Finished:
    """Runs a program without input. OSError or ValueError (a NUL in an argument) if it cannot be started."""
    with children.no_orphans():
        marked = watcher.begin(env)
        pipe = subprocess.PIPE
        try:
            process = children.start(
                argv, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=marked, cwd=cwd, bufsize=0
            )
        except (OSError, ValueError):
            watcher.end()
            raise
        reading = _Reading(process, limit)
        try:
            reason = reading.until(time.monotonic() + timeout, f"no end after {timeout:g} s")
        finally:
            reading.close()
            status = children.finish(process)
    watcher.end()
    out, err = (b"".join(part) for part in reading.parts)
    return Finished(None if reason else status, out, err, reason)


class _Reading:
    """Reads both outputs of a program."""

    def __init__(self, process: subprocess.Popen[bytes], limit: int) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._left = limit
        self._selector = selectors.DefaultSelector()
        self.parts: tuple[list[bytes], list[bytes]] = ([], [])
        for pipe, part in zip((process.stdout, process.stderr), self.parts, strict=True):
            self._selector.register(pipe, selectors.EVENT_READ, part)

    def until(self, deadline: float, overdue: str) -> str:
        """Reads to the end. Returns why the program must be ended, or nothing."""
        asked = interrupt.requests()
        if asked:
            deadline = min(deadline, time.monotonic() + _HURRY)
        exited_at = None
        while self._selector.get_map():
            now = time.monotonic()
            if interrupt.requests() > asked:
                return "interrupted"
            if now >= deadline:
                return overdue
            if exited_at is None and self._process.poll() is not None:
                exited_at = now
            if exited_at is not None and now >= exited_at + _DRAIN:
                return ""
            if not self._read():
                return "its output is too long"
        return self._wait(deadline, asked, overdue)

    def _read(self) -> bool:
        for key, _ in self._selector.select(_POLL):
            data = os.read(key.fd, 1 << 16)
            if not data:
                self._selector.unregister(key.fileobj)
            self._left -= len(data)
            key.data.append(data)
        return self._left >= 0

    def _wait(self, deadline: float, asked: int, overdue: str) -> str:
        """Waits for a program that has closed its outputs."""
        while interrupt.requests() <= asked:
            try:
                self._process.wait(max(0.0, min(_POLL, deadline - time.monotonic())))
            except subprocess.TimeoutExpired:
                if time.monotonic() >= deadline:
                    return overdue
            else:
                return ""
        return "interrupted"

    def close(self) -> None:
        self._selector.close()
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()
