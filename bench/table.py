"""The table of results."""

from __future__ import annotations

import os
import platform
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEADINGS = ("", "measured", "figure", "aim", "reached", "how it was measured")


class Row(msgspec.Struct, frozen=True):
    """One figure. `reached` is None if there is no aim, or the figure could not be measured."""

    key: str
    what: str
    figure: str
    aim: str = ""
    reached: bool | None = None
    note: str = ""


def render(rows: Sequence[Row]) -> str:
    """A Markdown table, aligned so that it is readable in a terminal, too."""
    answer = {True: "yes", False: "NO", None: ""}
    body = [(r.key, r.what, r.figure, r.aim, answer[r.reached], r.note) for r in rows]
    widths = [max(len(line[column]) for line in (_HEADINGS, *body)) for column in range(len(_HEADINGS))]
    rule = tuple("-" * max(3, width) for width in widths)
    return "\n".join(
        "| " + " | ".join(cell.ljust(max(3, width)) for cell, width in zip(line, widths, strict=True)) + " |"
        for line in (_HEADINGS, rule, *body)
    )


def machine() -> str:
    return f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
