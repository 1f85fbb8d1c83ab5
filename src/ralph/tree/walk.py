"""One pass over a tree. A folder whose entries are all as they were costs one `lstat` for each, and nothing else."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeAlias

from ralph.tree.contents import Contents, Identity, identity
from ralph.tree.repository import git_folders, reference_of
from ralph.tree.rules import IGNORE_FILE, RuleBook, Scope

if TYPE_CHECKING:
    from collections.abc import Callable

#: Signatures by folder, each with what it was when it was made.
Known: TypeAlias = dict[bytes, dict[bytes, tuple[Identity, bytes]]]
_GIT = b".git"


class Folder:
    """A folder as it was found."""

    __slots__ = ("below", "identities", "listed", "places", "signatures")

    def __init__(self) -> None:
        #: its own identity; None if its entries may have changed since without changing it
        self.listed: Identity | None = None
        #: its files, with their identities; None for a file that must be read again
        self.places: list[bytes] = []
        self.identities: list[Identity | None] = []
        self.signatures: dict[bytes, bytes] = {}
        #: folders in it, with their rules; within an ignored one, only tracked files count
        self.below: list[tuple[bytes, Scope | None, bool]] = []

    def is_same(self, place: bytes) -> bool:
        if self.listed is None:
            return False
        try:
            if identity(os.lstat(place)) != self.listed:
                return False
            return [*map(identity, map(os.lstat, self.places))] == self.identities
        except OSError:
            return False

    def known(self) -> dict[bytes, tuple[Identity, bytes]]:
        found = zip(self.signatures.items(), self.identities, strict=True)
        return {name: (was, sign) for (name, sign), was in found if was is not None}


class Walk:
    def __init__(
        self,
        place: bytes,
        ours: frozenset[bytes],
        contents: Contents,
        book: RuleBook,
        last: dict[bytes, Folder],
        known: Known,
        check_time: Callable[[], None],
    ) -> None:
        """`last` is what the last walk of this run found. `known` are signatures of earlier runs."""
        self._place = place
        self._ours = ours
        self._contents = contents
        self._book = book
        self._last = last
        self._known = known
        self._check_time = check_time
        self.folders: dict[bytes, Folder] = {}
        self.files: dict[bytes, dict[bytes, bytes]] = {}
        #: HEAD of each repository inside the repository
        self.nested: dict[bytes, str] = {}
        self._waiting: list[tuple[bytes, Scope | None, bool]] = [(b"", None, False)]

    def run(self) -> None:
        while self._waiting:
            self._check_time()
            path, scope, ignored = self._waiting.pop()
            folder = self._last.get(path)
            if folder is None or not folder.is_same(self._place + path):
                folder = self._look(path, scope, ignored=ignored)
            if folder is None:
                self._unreadable(path)
                continue
            self.folders[path] = folder
            if folder.signatures:
                self.files[path] = folder.signatures
            self._waiting += folder.below

    def _look(self, path: bytes, scope: Scope | None, *, ignored: bool) -> Folder | None:
        """Reads what is new or different in a folder. None if it cannot be read."""
        place = self._place + path
        try:
            own = identity(os.lstat(place))
            with os.scandir(place) as found:
                entries = list(found)
        except OSError:
            return None
        last = self._last.get(path)
        folder = Folder()
        names = [entry.name for entry in entries]
        if self._contents.is_settled(own) and _GIT not in names:  # whether that is a repository may change any time
            folder.listed = own
        scope = self._enter(path, names, scope)
        known = last.known() if last is not None else self._known.get(path, {})
        counted = last.signatures if last is not None else {}
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                self._subfolder(folder, entry.name, path, scope, ignored=ignored)
            elif entry.name in counted or not self._skips(path + entry.name, entry.name, scope, ignored=ignored):
                self._file(folder, entry, place, known)
        if last is not None and folder.signatures == last.signatures:
            folder.signatures = last.signatures  # so that comparing them takes no time
        return folder

    def _file(
        self, folder: Folder, entry: os.DirEntry[bytes], parent: bytes, known: dict[bytes, tuple[Identity, bytes]]
    ) -> None:
        try:
            info = entry.stat(follow_symlinks=False)
        except OSError:
            return  # it has just been deleted
        name = entry.name
        found, place = identity(info), parent + name
        now: Identity | None = found
        old = known.get(name)
        if old is not None and old[0] == found:
            sign = old[1]
        else:
            self._check_time()
            sign, holds = self._contents.signature(place, info, found)
            now = found if holds else None
        folder.places.append(place)
        folder.identities.append(now)
        folder.signatures[name] = sign

    def _enter(self, path: bytes, names: list[bytes], scope: Scope | None) -> Scope | None:
        folders = git_folders(os.fsdecode(self._place + path)) if _GIT in names else None
        if folders is not None and path:
            self.nested[path] = reference_of(folders)
        return self._book.scope(path, scope, is_repository=folders is not None, has_file=IGNORE_FILE in names)

    def _subfolder(self, folder: Folder, name: bytes, parent: bytes, scope: Scope | None, *, ignored: bool) -> None:
        path = parent + name
        if path in self._ours:
            return
        if name == _GIT and git_folders(os.fsdecode(self._place + parent)) is not None:
            self._hooks(folder, path + b"/hooks/")
            return  # git's own folder; one that only has its name counts
        if scope is not None and (ignored or scope.ignores(path, name, is_folder=True)):
            if not self._book.keeps(scope, path, is_folder=True):
                return
            ignored = True
        folder.below.append((path + b"/", scope, ignored))

    def _hooks(self, folder: Folder, path: bytes) -> None:
        """The only part of git's own folder that counts: the user's next commit would run what an agent puts there."""
        if os.path.isdir(self._place + path):  # noqa: PTH112 - bytes
            folder.below.append((path, Scope(path, b"*.sample\n", None, path), False))

    def _skips(self, path: bytes, name: bytes, scope: Scope | None, *, ignored: bool) -> bool:
        if path in self._ours:
            return True
        if scope is None or not (ignored or scope.ignores(path, name, is_folder=False)):
            return False
        return not self._book.keeps(scope, path, is_folder=False)

    def _unreadable(self, path: bytes) -> None:
        """A folder that cannot be read is an entry of its own, so that hiding something in it is a change."""
        try:
            found = b"u%x.%x.%x.%x.%x" % identity(os.lstat(self._place + path))
        except (OSError, ValueError):
            found = b"u"
        self.files[path] = {b"": found}
