"""Which files an agent may change (`--allowed-paths`)."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from ralph.config.guards import AND

if TYPE_CHECKING:
    from collections.abc import Iterable


def outside(files: Iterable[str], allowed: Iterable[str]) -> list[str]:
    """The files that no allowed path covers: a file, a folder (`src` or `src/`), or a pattern (`docs/**`, `*.md`)."""
    patterns = [[part.removeprefix("./") for part in entry.split(AND)] for entry in allowed]
    return [f for f in files if not any(all(_covers(part, f) for part in parts) for parts in patterns)]


def _covers(pattern: str, name: str) -> bool:
    if name.startswith("../") and not pattern.startswith(".."):
        return False  # outside the working directory: only a path that starts with .. covers it
    folder = pattern.rstrip("/")
    if folder in ("", ".") or name == folder or name.startswith(folder + "/"):
        return True
    return fnmatchcase(name, pattern) or fnmatchcase(name, pattern.replace("**/", ""))
