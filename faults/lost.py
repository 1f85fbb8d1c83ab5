"""Counts the bytes that an agent wrote and the journal lacks."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_STEP = 1 << 20
#: This many consecutive bytes are taken to occur only once.
_PROBE = 64


def missing(side: Path, raw: Path | None) -> int:
    """How many bytes of `side` are not in `raw`, in the same order.

    `raw` may be longer than `side`: an agent may be killed between printing a byte and noting it.
    """
    total = side.stat().st_size
    if not total or raw is None or not raw.exists() or not raw.stat().st_size:
        return total
    with (
        side.open("rb") as ours,
        raw.open("rb") as theirs,
        mmap.mmap(ours.fileno(), 0, prot=mmap.PROT_READ) as a,
        mmap.mmap(theirs.fileno(), 0, prot=mmap.PROT_READ) as b,
    ):
        return _missing(a, b)


def _missing(written: mmap.mmap, kept: mmap.mmap) -> int:
    lost = here = there = 0
    while here < len(written):
        same = _same(written, here, kept, there)
        here, there = here + same, there + same
        if here == len(written):
            break
        again = written.find(kept[there : there + _PROBE], here) if there < len(kept) else -1
        if again < 0:
            return lost + len(written) - here
        lost += again - here
        here = again
    return lost


def _same(a: mmap.mmap, i: int, b: mmap.mmap, j: int) -> int:
    """How many bytes are equal from these positions on."""
    same = 0
    while i + same < len(a) and j + same < len(b):
        x, y = a[i + same : i + same + _STEP], b[j + same : j + same + _STEP]
        size = min(len(x), len(y))
        if x[:size] != y[:size]:
            return same + next(k for k in range(size) if x[k] != y[k])
        same += size
    return same
