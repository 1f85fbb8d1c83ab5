"""The plan of the driver convention: a list of boxes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from ralph.system import files

if TYPE_CHECKING:
    from pathlib import Path

#: In the order in which they are looked for.
PLACES = (".ralph/fix_plan.md", ".ralph/@fix_plan.md", "@fix_plan.md")
_BOX = re.compile(r"^[ \t]*[-*+][ \t]+\[([ xX])\]", re.MULTILINE)


class Boxes(msgspec.Struct, frozen=True):
    ticked: int = 0
    open: int = 0

    @property
    def complete(self) -> bool:
        """A plan without boxes says nothing."""
        return self.ticked > 0 and self.open == 0


def find(workdir: Path) -> str | None:
    return next((place for place in PLACES if (workdir / place).is_file()), None)


def count(path: Path) -> Boxes:
    """The boxes now; none of a file that cannot be read."""
    try:
        marks = _BOX.findall(files.read_text(path))
    except OSError:
        return Boxes()
    return Boxes(sum(mark != " " for mark in marks), marks.count(" "))
