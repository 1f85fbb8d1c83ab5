"""Resources that the loops use while they run: the memory of ralph and its keeper, and processor time."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from bench.measure import MB

_TICKS = os.sysconf("SC_CLK_TCK")


class Peak(msgspec.Struct):
    """The peak memory of ralph and its keeper together, in megabytes."""

    pss: float = 0.0
    rss: float = 0.0

    def update(self, ralph: int) -> None:
        pss = rss = 0.0
        for pid in (ralph, *_keepers(ralph)):
            rollup = _rollup(pid)
            pss += rollup.get("Pss", 0) / MB
            rss += rollup.get("Rss", 0) / MB
        self.pss, self.rss = max(self.pss, pss), max(self.rss, rss)


def _keepers(ralph: int) -> list[int]:
    """The keeper. Other children of ralph, such as git, live only for moments."""
    found = []
    for pid in map(int, _read(f"/proc/{ralph}/task/{ralph}/children").split()):
        if b"keeper.py" in _read(f"/proc/{pid}/cmdline"):
            found.append(pid)
    return found


def _rollup(pid: int) -> dict[str, int]:
    """The fields of smaps_rollup, in bytes."""
    rows = (line.split() for line in _read(f"/proc/{pid}/smaps_rollup").splitlines()[1:])
    return {row[0].decode().rstrip(":"): int(row[1]) * 1024 for row in rows if len(row) == 3}


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:  # it has just ended
        return b""


def busy() -> float:
    """The processor time of all processes since the machine started, in seconds."""
    user, nice, system, _idle, _wait, irq, softirq, *_ = map(int, _read("/proc/stat").split(b"\n", 1)[0].split()[1:])
    return (user + nice + system + irq + softirq) / _TICKS
