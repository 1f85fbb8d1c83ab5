"""Describes the items that need approval. These texts cannot control a terminal or hide a part of themselves."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ralph.system.files import leads_out
from ralph.system.terminal import safe
from ralph.trust.store import is_changed

if TYPE_CHECKING:
    from ralph.trust.items import Item

#: Enough to push the rest of a command off the screen.
_BLANKS = re.compile(r"[^\S\n]{9,}")
_EMPTY_LINES = re.compile(r"\n(?:[^\S\n]*\n){3,}")
_LINE_LENGTH = 1000
_LINES_SHOWN = 100


def refusal(missing: list[Item]) -> str:
    """Why nothing was run, and how to approve it."""
    outside = any(item.path or item.owner for item in missing)
    return "\n".join(
        [
            f"this repository would {what_for(missing)}, which you have not approved yet:",
            *listed(missing),
            "Nothing was run. To approve it as it is now: ralph trust    For this run only: ralph run --trust",
            *(["Paths on the command line need no approval: -P FILE, --plan FILE, --cwd DIR"] if outside else []),
        ]
    )


def what_for(missing: list[Item]) -> str:
    """What the repository would do."""
    parts = []
    if not all(item.path or item.owner for item in missing):
        parts.append("run its own code")
    if any(item.path for item in missing):
        parts.append("use files outside of it")
    if any(item.owner for item in missing):
        parts.append("use another user's files")
    return " and ".join(parts)


def listed(shown: list[Item]) -> list[str]:
    return [line for item in shown for line in _lines(item)]


def _lines(item: Item) -> list[str]:
    changed = "  (new or changed since you approved it)" if is_changed(item) else ""
    place = f" ({item.origin})" if item.origin else ""
    if not item.text:
        path = item.root / item.what
        target = leads_out(path, item.root)
        link = f", a link to {target}" if target is not None and path.is_relative_to(item.root) else ""
        return [safe(f"  file       {path}{link}{place}{changed}")]
    first, *rest = visible_lines(item.text)
    return [
        safe(f"  {item.what:<10} {first}") + safe(f"{place}{changed}"),
        *(f"  {'':<10} {safe(more)}" for more in rest),
    ]


def visible_lines(text: str) -> list[str]:
    """A command as lines that hide no part of it: long runs of blanks are counted, long lines are broken."""
    lines: list[str] = []
    for line in _EMPTY_LINES.sub(_counted_lines, text.rstrip("\n")).split("\n"):
        shown = _BLANKS.sub(lambda found: f" <{len(found.group())} blanks> ", line)
        lines += [shown[at : at + _LINE_LENGTH] for at in range(0, max(1, len(shown)), _LINE_LENGTH)]
    if len(lines) > _LINES_SHOWN:
        hidden = len(lines) - _LINES_SHOWN
        half = _LINES_SHOWN // 2
        more = "1 more line is" if hidden == 1 else f"{hidden} more lines are"
        lines = [*lines[:half], f"<{more} NOT SHOWN: read the file>", *lines[-half:]]
    return lines


def _counted_lines(found: re.Match[str]) -> str:
    return f"\n<{found.group().count(chr(10)) - 1} empty lines>\n"
