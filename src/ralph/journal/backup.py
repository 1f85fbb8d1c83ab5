"""A backup of a run outside the working tree: a hard link to each of its files, for as long as the run lasts.

An agent or a check may delete everything that git does not track (`git clean -fdx`), stash it away
(`git stash --all`), or delete the repository and create it again, and the record of the run with it. The backup is in
the user's state folder; if that is on another file system, it is in the repository's git folder, which the first two do
not touch. A hard link takes no space.
"""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

from ralph.journal.layout import RunPaths
from ralph.journal.lock import is_locked
from ralph.system.digest import digest
from ralph.system.files import read_text, repository
from ralph.system.folders import make_folder, user_state_dir

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ralph.journal.layout import StatePaths


def _shared_files(state: StatePaths) -> dict[str, Path]:
    """The files outside the run's folder that it needs, by their names in the backup."""
    return {"directory.lock": state.lock, "directory.gitignore": state.root / ".gitignore"}


class Backup:
    """The backup of one run. It does nothing where no hard link can be made."""

    def __init__(self, paths: RunPaths, state: StatePaths) -> None:
        self._paths = paths
        self._state = state
        self._root = _usable(paths, state)

    def keep(self, *files: Path) -> None:
        """Backs up files of the run's folder that are new or were replaced."""
        for file in files:
            self._link(file, file.relative_to(self._paths.root))

    def keep_all(self) -> None:
        """Backs up every file that exists now."""
        self.keep(*_files(self._paths.root))
        for name, file in _shared_files(self._state).items():
            self._link(file, name)

    def _link(self, file: Path, name: Path | str) -> None:
        if self._root is None:
            return
        try:
            _link(file, self._root / name)
        except FileNotFoundError:
            pass  # it has just been deleted; its backup stays
        except OSError:
            self.drop()  # another file system, or one without hard links
            self._root = None

    def restore(self) -> bool:
        """Restores files of the run that are missing or were replaced by copies. True if there were any."""
        if self._root is None:
            return False
        try:
            return _restore(self._root, self._paths, self._state)
        except OSError:
            return False  # the next write to the journal reports what is wrong

    def drop(self) -> None:
        """Removes the backup. The run is over, and the user may delete it for good."""
        if self._root is not None:
            _remove(self._root)


def recover(state: StatePaths) -> list[str]:
    """Restores runs whose process died and whose folder was deleted. Returns their ids."""
    found: list[str] = []
    if state.root.is_symlink() or state.runs.is_symlink():
        return found  # a link to somewhere else is reported later
    for root in sorted(root for folder in _folders(state.workdir) for root in folder.glob("*")):
        paths = RunPaths(state.runs / root.name)
        ours = root.is_dir() and not root.is_symlink() and (root / paths.events.name).is_file()
        if not ours or is_locked(root / paths.lock.name):
            continue
        with suppress(OSError):  # then the backup stays
            if not paths.root.exists() and _restore(root, paths, state):
                found.append(root.name)
            _remove(root)
    return found


def _restore(root: Path, paths: RunPaths, state: StatePaths) -> bool:
    changed = False
    shared = _shared_files(state)
    for name in _files(root):
        file = shared.get(name.name)
        if file is None or name.parent != root:
            changed = _link(name, paths.root / name.relative_to(root)) or changed
        elif not os.path.lexists(file):  # otherwise another process may hold the lock by now
            _link(name, file)
    return changed


def _usable(paths: RunPaths, state: StatePaths) -> Path | None:
    """The first folder for backups that is on the same file system, which is the only way to find that out."""
    for folder in _folders(state.workdir):
        root = folder / paths.run_id
        try:
            _link(paths.lock, root / paths.lock.name)
        except OSError:
            _remove(root)
        else:
            return root
    return None


def _folders(workdir: Path) -> list[Path]:
    """Where the backups of a working directory's runs may be."""
    place = digest(os.fsencode(os.path.realpath(workdir)))[:32]
    return [folder for folder in (user_state_dir() / "backups" / place, _in_git(workdir)) if folder is not None]


def _in_git(workdir: Path) -> Path | None:
    """A folder in git's own. A repository may contain several working directories."""
    top = repository(workdir)
    git = _git_folder(top)
    if git is None:
        return None
    inside = "%2F".join(part.replace("%", "%25") for part in workdir.relative_to(top).parts)
    folder = git / "ralph" / f"runs-{inside}"
    # Its content is deleted at the end of a run: a link that a repository brings must not lead to the user's files.
    return None if folder.is_symlink() or folder.parent.is_symlink() else folder


def _git_folder(top: Path) -> Path | None:
    """Git's own folder; that of an additional worktree is inside the main one's."""
    found = top / ".git"
    if found.is_symlink():
        return None
    if found.is_dir():
        return found
    try:
        pointer = read_text(found, limit=1 << 16)
    except OSError:
        return None
    prefix, _, path = pointer.partition("gitdir: ")
    folder = found.parent / path.rstrip("\n")
    return folder if not prefix and path and (folder / "HEAD").is_file() else None


def _files(folder: Path) -> Iterator[Path]:
    """Everything but folders and symbolic links, recursively; a FIFO, too."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda e: e.name):
            path = folder / entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from _files(path)
            elif not entry.is_symlink():
                yield path


def _same(one: Path, other: Path) -> bool:
    """Whether both are names of one file. The first must exist."""
    first = one.lstat()
    try:
        second = other.lstat()
    except OSError:
        return False
    return (first.st_ino, first.st_dev) == (second.st_ino, second.st_dev)


def _link(file: Path, name: Path) -> bool:
    """Makes `name` a hard link to the file, replacing any other file there. False if it is one already."""
    if _same(file, name):
        return False
    make_folder(name.parent)
    temporary = name.with_name(f"{name.name}.{secrets.token_hex(4)}")
    os.link(file, temporary, follow_symlinks=False)
    temporary.replace(name)
    return True


def _remove(root: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
    with suppress(OSError):  # other backups may be in there
        root.parent.rmdir()
        root.parent.parent.rmdir()
