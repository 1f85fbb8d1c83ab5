"""The result of one engine for one target, and the table of all results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEADINGS = ("target", "engine", "executions", "per second", "coverage and corpus", "crashes")


#: How much of an error the table shows. All of it is printed when it is found.
_SHOWN = 160


class Result(msgspec.Struct, frozen=True):
    target: str
    engine: str
    executions: int
    seconds: float
    #: coverage and corpus, as the engine reports them
    reach: str = ""
    crashes: list[bytes] = []
    #: the error of the last crash, on one line
    error: str = ""
    #: whether the crash is an exception, not a hang or lack of memory, which we could not survive if we repeated it
    raised: bool = True


def render(results: Sequence[Result]) -> str:
    body = [
        (r.target, r.engine, f"{r.executions:,}", f"{r.executions / max(r.seconds, 0.001):,.0f}", r.reach,
         f"{len(r.crashes)}: {r.error}"[:_SHOWN] if r.crashes else "none")
        for r in results
    ]  # fmt: skip
    widths = [max(len(line[column]) for line in (_HEADINGS, *body)) for column in range(len(_HEADINGS))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column in (2, 3) else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in (_HEADINGS, *body)
    )
