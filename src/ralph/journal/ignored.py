"""Keeps our files out of git, by their names: what else is in those folders belongs to the user."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from ralph.system.files import read, repository
from ralph.system.folders import create_file, make_folder
from ralph.tree.patterns import Patterns
from ralph.tree.repository import git_folders

#: In `.ralph/`. A folder ends with a slash.
STATE_FILES = ("runs/", "latest", "lock", "ralph-crash-*")
_FILE = ".gitignore"


def ignore_by_name(folder: Path, names: tuple[str, ...]) -> None:
    """Creates a `.gitignore` in the folder. If there is one, it is the user's, and may be tracked: then what it does
    not ignore goes to the repository's own list (`info/exclude`). OSError if the first cannot be written."""
    try:
        create_file(folder / _FILE, "".join(f"/{name}\n" for name in (_FILE, *names)).encode())
    except FileExistsError:
        missing = [name for name in names if not _is_ignored(folder / _FILE, name)]
        if missing:
            with suppress(OSError, ValueError):  # the run does not depend on it
                _exclude(folder, missing)


def _is_ignored(file: Path, name: str) -> bool:
    try:
        patterns = Patterns(read(file, follow=False))
    except OSError:
        return False
    plain = name.rstrip("/").encode()
    return patterns.decide(plain, plain, is_folder=name.endswith("/")) is True


def _exclude(folder: Path, names: list[str]) -> None:
    top = repository(folder)
    file = _exclude_file(top)
    inside = os.path.relpath(folder, top)
    if file is None or "\n" in inside:
        return
    make_folder(file.parent, 0o755)
    with suppress(FileExistsError):
        create_file(file, b"")
    lines = read(file, follow=False).decode("utf-8", "surrogateescape")
    plain = re.sub(r"([\\*?\[ ])", r"\\\1", inside)
    wanted = [line for name in names if (line := f"/{plain}/{name}") not in lines.splitlines()]
    if wanted:
        separator = "" if not lines or lines.endswith("\n") else "\n"
        with file.open("a", encoding="utf-8", errors="surrogateescape") as new:
            new.write(separator + "".join(f"{line}\n" for line in wanted))


def _exclude_file(top: Path) -> Path | None:
    """None without a repository, or if a repository's own links lead to a file somewhere else."""
    found = git_folders(str(top))
    if found is None:
        return None
    common = Path(found.common)
    back = Path(found.own) / "gitdir"  # an additional working tree is known to its repository
    known = back.is_file() and os.path.realpath(back.read_text().rstrip("\n")) == os.path.realpath(top / ".git")
    file = common / "info" / "exclude"
    inside = os.path.realpath(file).startswith(os.path.realpath(top) + os.sep)
    linked = file.is_symlink() or file.parent.is_symlink()
    return file if (inside or known) and not linked else None
