"""A second name for every file of a run, in the repository's git folder, for as long as the run goes on.

An agent, or a check, may delete all that git does not know (`git clean -fdx`), or put it aside (`git stash --all`): the
record of the run would be gone with it. The git folder is left alone by all that, and a second name costs no space.
"""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

from ralph.journal.layout import RunPaths
from ralph.journal.lock import is_locked
from ralph.system.files import repository

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ralph.journal.layout import StatePaths


def _beside(state: StatePaths) -> dict[str, Path]:
    """What stands beside the runs, and belongs to them."""
    return {"directory.lock": state.lock, "directory.gitignore": state.root / ".gitignore"}


class Spare:
    """Of one run. Where there is no git folder, or no second name can be given, there is none."""

    def __init__(self, paths: RunPaths, state: StatePaths) -> None:
        self._paths = paths
        self._state = state
        folder = _folder(state.workdir)
        self._root = None if folder is None else folder / paths.run_id

    def keep(self, *files: Path) -> None:
        """Files of the run's folder: new ones, or such that were written anew."""
        for file in files:
            self._give(file, file.relative_to(self._paths.root))

    def keep_all(self) -> None:
        """All that is there by now."""
        self.keep(*_files(self._paths.root))
        for name, file in _beside(self._state).items():
            self._give(file, name)

    def _give(self, file: Path, name: Path | str) -> None:
        if self._root is None:
            return
        try:
            _name(file, self._root / name)
        except FileNotFoundError:
            pass  # it has just been deleted; what is known of it is kept
        except OSError:
            self.drop()  # another file system, or one without links
            self._root = None

    def put_back(self) -> bool:
        """Whether files of the run were missing, or copies, and are there again."""
        if self._root is None:
            return False
        try:
            return _put_back(self._root, self._paths, self._state)
        except OSError:
            return False  # whoever needs them says what is wrong

    def drop(self) -> None:
        """The run is over: from now on the user may delete it for good."""
        if self._root is not None:
            _remove(self._root)


def recover(state: StatePaths) -> list[str]:
    """Of runs whose process died: those whose folder was deleted before it could be put back, and is there again."""
    folder = _folder(state.workdir)
    found: list[str] = []
    if state.root.is_symlink() or state.runs.is_symlink():
        return found  # where that leads is asked for later
    for root in sorted(folder.glob("*")) if folder is not None else []:
        paths = RunPaths(state.runs / root.name)
        ours = root.is_dir() and not root.is_symlink() and (root / paths.events.name).is_file()
        if not ours or is_locked(root / paths.lock.name):
            continue
        with suppress(OSError):  # then they stay where they are
            if not paths.root.exists() and _put_back(root, paths, state):
                found.append(root.name)
            _remove(root)
    return found


def _put_back(root: Path, paths: RunPaths, state: StatePaths) -> bool:
    changed = False
    beside = _beside(state)
    for name in _files(root):
        file = beside.get(name.name)
        if file is None or name.parent != root:
            changed = _name(name, paths.root / name.relative_to(root)) or changed
        elif not os.path.lexists(file):  # else somebody else may hold the lock by now
            _name(name, file)
    return changed


def _folder(workdir: Path) -> Path | None:
    """Where the runs of a directory have their second names: several in one repository may have runs."""
    top = repository(workdir)
    git = _git_folder(top)
    if git is None:
        return None
    inside = "%2F".join(part.replace("%", "%25") for part in workdir.relative_to(top).parts)
    folder = git / "ralph" / f"runs-{inside}"
    # What is in it is deleted in the end: a stranger's link must not lead us to other things of the user's.
    return None if folder.is_symlink() or folder.parent.is_symlink() else folder


def _git_folder(top: Path) -> Path | None:
    """Where git keeps what is its own; of a further worktree that is a folder in the first one's."""
    found = top / ".git"
    if found.is_symlink():
        return None
    if found.is_dir():
        return found
    try:
        told = found.read_text("utf-8", "replace")
    except OSError:
        return None
    prefix, _, path = told.partition("gitdir: ")
    folder = found.parent / path.rstrip("\n")
    return folder if not prefix and path and (folder / "HEAD").is_file() else None


def _files(folder: Path) -> Iterator[Path]:
    """All but folders and links: a bell, too."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda e: e.name):
            path = folder / entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from _files(path)
            elif not entry.is_symlink():
                yield path


def _same(one: Path, other: Path) -> bool:
    """Whether both are names of one file. The first must be there."""
    first = one.lstat()
    try:
        second = other.lstat()
    except OSError:
        return False
    return (first.st_ino, first.st_dev) == (second.st_ino, second.st_dev)


def _name(file: Path, name: Path) -> bool:
    """Gives the file a further name, which may be another file's by now; False if it has it already."""
    if _same(file, name):
        return False
    name.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = name.with_name(f"{name.name}.{secrets.token_hex(4)}")
    os.link(file, temporary, follow_symlinks=False)
    temporary.replace(name)
    return True


def _remove(root: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
    with suppress(OSError):  # the last one
        root.parent.rmdir()
        root.parent.parent.rmdir()
