"""The fix plan of the driver convention: a Markdown list with checkboxes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from ralph.system import files

if TYPE_CHECKING:
    from pathlib import Path

#: Where a fix plan may be. The first one that exists counts.
PLACES = (".ralph/fix_plan.md", ".ralph/@fix_plan.md", "@fix_plan.md")
#: A box with a tilde is work in progress.
_BOX = re.compile(r"^[ \t]*[-*+][ \t]+\[([ ~xX])\]", re.MULTILINE)


class Boxes(msgspec.Struct, frozen=True):
    ticked: int = 0
    open: int = 0

    @property
    def complete(self) -> bool:
        """Whether every box is ticked. A plan without boxes is never complete."""
        return self.ticked > 0 and self.open == 0


def find(workdir: Path) -> str | None:
    return next((place for place in PLACES if (workdir / place).is_file()), None)


def count(path: Path) -> Boxes:
    """Counts the boxes in the file as it is now. A file that cannot be read has none."""
    try:
        marks = _BOX.findall(files.read_text(path))
    except OSError:
        return Boxes()
    ticked = sum(mark in "xX" for mark in marks)
    return Boxes(ticked, len(marks) - ticked)
