"""The table of results."""

from __future__ import annotations

import os
import platform
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

HEADINGS = ("fault", "expected", "seen", "bytes lost", "processes left", "seconds")


class Row(msgspec.Struct, frozen=True):
    """`good` is None if the fault could not be injected; `lost` is None if no bytes were counted."""

    name: str
    expected: str
    seen: str
    good: bool | None
    lost: int | None
    left: int
    seconds: float


def render(rows: Sequence[Row]) -> str:
    """A Markdown table, aligned for reading in a terminal."""
    body = [_cells(row) for row in rows]
    widths = [max(len(line[column]) for line in (HEADINGS, *body)) for column in range(len(HEADINGS))]
    rule = tuple("-" * width for width in widths)
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
        for line in (HEADINGS, rule, *body)
    )


def _cells(row: Row) -> tuple[str, ...]:
    seen = "as expected" if row.good else row.seen if row.good is None else f"WRONG: {row.seen}"
    lost = "" if row.lost is None else f"{row.lost:,}"
    cells = (row.name, row.expected, seen, lost, str(row.left), f"{row.seconds:.1f}")
    return tuple(" ".join(cell.replace("|", "¦").split()) for cell in cells)


def _count(number: int, what: str) -> str:
    plural = "es" if what.endswith("s") else "s"
    return f"{number:,} {what}{'' if number == 1 else plural}"


def summary(rows: Sequence[Row], seconds: float) -> str:
    wrong = sum(row.good is False for row in rows)
    skipped = sum(row.good is None for row in rows)
    lost = _count(sum(row.lost or 0 for row in rows), "byte")
    left = _count(sum(row.left for row in rows), "process")
    skips = f", {skipped} not possible here" if skipped else ""
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
    verdict = f"{_count(len(rows), 'fault')}: {wrong} wrong{skips}; {lost} lost, {left} left"
    return f"{verdict}; {seconds:.0f} s on {machine}"
