"""Watches the memory and the open files of a running ralph."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from faults.place import HangError

if TYPE_CHECKING:
    from faults.place import Running

_MB = 1_000_000
#: Allocators grow in steps: this much growth is not a leak.
_SLACK = 8 * _MB


class Watch:
    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.memory: list[int] = []
        self.files: list[int] = []
        self.peak = 0

    def follow(self, running: Running, within: float) -> int:
        """Samples many times a second until ralph ends; its exit code."""
        end = time.monotonic() + within
        while running.process.poll() is None:
            if time.monotonic() > end:
                raise HangError(f"ralph was still running after {within:g} s; {self.summary()}")
            self._look()
            time.sleep(0.02)
        return running.process.returncode

    def _look(self) -> None:
        try:
            status = Path(f"/proc/{self._pid}/status").read_text()
            files = len(os.listdir(f"/proc/{self._pid}/fd"))
        except OSError:  # it has just ended
            return
        sizes = {line.split(":")[0]: line.split() for line in status.splitlines()}
        if "VmRSS" in sizes:  # a process that is ending has no memory
            self.memory.append(int(sizes["VmRSS"][1]) * 1024)
            self.files.append(files)
            self.peak = max(self.peak, int(sizes["VmHWM"][1]) * 1024)

    def flat(self) -> bool:
        """Whether the last quarter needed no more memory than the second one, and no more files at its lowest point.

        The lowest point counts because starting a process opens more files for a moment.
        """
        quarter = len(self.memory) // 4
        if quarter < 3:
            return False  # too few samples
        second, last = slice(quarter, 2 * quarter), slice(3 * quarter, 4 * quarter)
        more = max(self.memory[last]) - max(self.memory[second])
        return more <= _SLACK and min(self.files[last]) <= min(self.files[second])

    def summary(self) -> str:
        if not self.memory:
            return "no samples"
        halves = self.memory[: len(self.memory) // 2] or self.memory, self.memory[len(self.memory) // 2 :]
        sizes = " then ".join(f"{max(half) / _MB:.0f} MB" for half in halves)
        return f"{sizes}, peak {self.peak / _MB:.0f} MB, {max(self.files)} files, {len(self.memory)} samples"
