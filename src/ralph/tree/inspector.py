"""Looks at a working tree: every file on disk, without asking the repository what to look at.

The repository's git is asked for HEAD and for the list of tracked files only, and neither makes it run a program. What
an agent tells git, for example to ignore a file or to assume that it is unchanged, makes no difference.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from ralph.system import git, interrupt
from ralph.tree import cache
from ralph.tree.contents import Contents
from ralph.tree.repository import Repository
from ralph.tree.rules import RuleBook
from ralph.tree.snapshot import Changes, Snapshot, changed_files
from ralph.tree.walk import Folder, Walk

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

#: Seconds for one look at the tree, and for one after the user has asked to stop.
_LIMIT, _LIMIT_STOPPED = 60.0, 3.0
#: A snapshot that is younger than this is used again if nothing was started since.
_FRESH = 1.0
#: How often a stop is checked for, in seconds.
_CHECK_EVERY = 0.1
#: Reading files again is cheaper than remembering them if it takes less, in seconds.
_WORTH = 0.25


class _OutOfTimeError(Exception):
    """Its text says why."""


class Inspector:
    """Takes snapshots of one tree. `ours` are paths of ralph's own files, which never count as changes."""

    def __init__(
        self,
        workdir: Path,
        ours: Iterable[Path] = (),
        first: Snapshot | None = None,
        limit: float = _LIMIT,
    ) -> None:
        """`first` is the tree before the run, if it is resumed: what was ignored then is still ignored."""
        self.root = _root(workdir, first)
        self._place = os.fsencode(self.root.rstrip("/")) + b"/"
        self._ours = frozenset(_relative(self.root, ours))
        self._limit = limit
        self._repository = Repository(self.root)
        self._contents = Contents()
        self._known = cache.load(self.root)
        self._folders: dict[bytes, Folder] = {}
        self._known_rules = first.rules if first else None
        self._book: RuleBook | None = None
        self._last: Snapshot | None = None
        self._taken = float("-inf")
        self._end = self._next_check = 0.0

    def take(self, *, reuse: bool = False) -> Snapshot:
        """The tree now. With `reuse`, the last snapshot will do if it is fresh and nothing ran since (`forget`)."""
        if reuse and self._last is not None and time.monotonic() - self._taken < _FRESH:
            return self._last
        self._end = time.monotonic() + self._limit
        state = self._repository.state()
        if self._book is None:
            self._book = RuleBook(self.root, self._known_rules, self._repository.listed)
        walk = Walk(self._place, self._ours, self._contents, self._book, self._folders, self._known, self._check_time)
        self._contents.begin()
        incomplete = ""
        try:
            walk.run()
        except _OutOfTimeError as error:
            incomplete = str(error)
            self._folders |= walk.folders
        else:
            self._folders, self._known = walk.folders, {}
        self._book.close()
        self._contents.settle()
        self._last = Snapshot(os.fsencode(self.root), walk.files, state, walk.nested, self._book.rules, incomplete)
        self._taken = time.monotonic()
        return self._last

    def forget(self) -> None:
        """Something was started that may change the tree."""
        self._taken = float("-inf")

    def compare(self, before: Snapshot, after: Snapshot) -> Changes:
        files = changed_files(before, after)
        commits = self._repository.commits_between(before.state, after.state)
        unknown = before.incomplete or after.incomplete
        same = not files and not unknown and before.nested == after.nested and _same_state(before, after)
        return Changes(files, commits, not same, unknown)

    def save(self) -> None:
        """Remembers signatures for the next run, if reading the files again would take long."""
        if self._contents.spent >= _WORTH and self._last is not None and not self._last.incomplete:
            cache.save(self.root, {path: folder.known() for path, folder in self._folders.items()})

    def _check_time(self) -> None:
        now = time.monotonic()
        if now > self._next_check:
            self._next_check = now + _CHECK_EVERY
            if interrupt.requests():
                self._end = min(self._end, now + _LIMIT_STOPPED)
        if now > self._end:
            why = "interrupted" if interrupt.requests() else f"it took longer than {self._limit:.0f} s"
            raise _OutOfTimeError(f"looking at the files was cut short: {why}")


def _root(workdir: Path, first: Snapshot | None) -> str:
    """A run that is resumed keeps its root: a `.git` that is new or gone does not move it."""
    if first is not None:
        root = os.fsdecode(first.root)
        if f"{os.path.realpath(workdir)}/".startswith(f"{os.path.realpath(root).rstrip('/')}/"):  # it was not moved
            return root
    place = workdir.absolute()  # git would take a relative path as one from there
    return git.top(place) or str(place)


def _same_state(before: Snapshot, after: Snapshot) -> bool:
    old, new = before.state, after.state
    same_head = old.head == new.head if old.head is not None and new.head is not None else False
    return (same_head or old.reference == new.reference) and old.staged == new.staged


def _relative(root: str, paths: Iterable[Path]) -> Iterable[bytes]:
    real = os.path.realpath(root)
    for path in paths:
        # The last part may be a link of ours; what leads to it is as the walk finds it.
        whole = f"{os.path.realpath(path.parent)}/{path.name}"
        yield os.fsencode(os.path.relpath(whole, real))
