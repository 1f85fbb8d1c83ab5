"""What git ignored before the run. What an agent adds to the rules later hides nothing."""

from __future__ import annotations

import os
from bisect import bisect_left
from pathlib import Path

import msgspec

from ralph.system import files, git
from ralph.tree.patterns import Patterns
from ralph.tree.repository import git_folders, list_index

_LIMIT = 4 << 20
IGNORE_FILE = b".gitignore"


class Rules(msgspec.Struct, frozen=True):
    """Everything that decides whether a path is ignored, as it was before the run. It fills while that is read.

    Folders are relative to the top and end with a slash; the top is empty.
    """

    #: the content of each `.gitignore`, by its folder
    ignore: dict[bytes, bytes]
    #: the content of each repository's `info/exclude` and the user's own excludes, by the repository's folder
    exclude: dict[bytes, bytes]
    #: files that are tracked although a rule ignores them
    tracked: set[bytes]


class Scope:
    """The rules for one folder: those of its own `.gitignore`, then its parent's."""

    def __init__(self, folder: bytes, text: bytes, parent: Scope | None, repository: bytes) -> None:
        self._start = len(folder)
        self._patterns = Patterns(text)
        self._parent = parent
        self.repository = repository

    def ignores(self, path: bytes, name: bytes, *, is_folder: bool) -> bool:
        scope: Scope | None = self
        while scope is not None:
            decided = scope._patterns.decide(path[scope._start :], name, is_folder=is_folder)
            if decided is not None:
                return decided
            scope = scope._parent
        return False


class RuleBook:
    """Reads the rules on the first walk, and applies them on every walk."""

    def __init__(self, root: str, known: Rules | None, listed: bytes | None = None) -> None:
        """`known` are the rules of a run that is resumed; `listed` is the index of the outermost repository."""
        self._root = os.fsencode(root)
        self.reading = known is None
        self.rules = known or Rules({}, {}, set())
        self._index = {b"": _paths(b"", listed)} if listed is not None else {}

    def close(self) -> None:
        """What is found from now on is no longer from before the run."""
        self.reading = False
        self._index = {}

    def scope(self, folder: bytes, parent: Scope | None, *, is_repository: bool, has_file: bool) -> Scope | None:
        """The rules that apply in a folder. None: none do."""
        if self.reading:
            self._read(folder, is_repository=is_repository, has_file=has_file)
        excluded = self.rules.exclude.get(folder)
        if excluded is not None:  # the rules of an outer repository do not apply to an inner one
            parent = Scope(folder, excluded, None, folder)
        text = self.rules.ignore.get(folder)
        return parent if text is None or parent is None else Scope(folder, text, parent, parent.repository)

    def keeps(self, scope: Scope, path: bytes, *, is_folder: bool) -> bool:
        """Whether an ignored path counts nevertheless: git tracks it, or something in it."""
        if not self.reading:
            return path in self.rules.tracked
        index = self._index.get(scope.repository, [])
        wanted = path + b"/" if is_folder else path
        at = bisect_left(index, wanted)
        found = at < len(index) and (index[at].startswith(wanted) if is_folder else index[at] == wanted)
        if found:
            self.rules.tracked.add(path)
        return found

    def _read(self, folder: bytes, *, is_repository: bool, has_file: bool) -> None:
        place = Path(os.fsdecode(self._root + b"/" + folder))
        if is_repository and self._knows_index(folder, str(place)):
            self.rules.exclude[folder] = self._excludes(str(place))
        if has_file:
            text = _read(place / os.fsdecode(IGNORE_FILE))
            if text:
                self.rules.ignore[folder] = text

    def _knows_index(self, folder: bytes, place: str) -> bool:
        """Where it is unknown what git tracks, nothing counts as ignored."""
        if folder and folder not in self._index:
            listed = list_index(place)
            if listed is not None:
                self._index[folder] = _paths(folder, listed)
        return folder in self._index

    def _excludes(self, place: str) -> bytes:
        """The user's own excludes, then the repository's, whose patterns win."""
        folders = git_folders(place)
        named = git.ask(place, "config", "--type=path", "--get", "core.excludesFile")
        own = named.strip("\n") if named else _default_excludes()
        return _read(Path(own)) + b"\n" + (_read(Path(folders.common) / "info" / "exclude") if folders else b"")


def _paths(folder: bytes, listed: bytes) -> list[bytes]:
    return sorted(folder + entry.partition(b"\t")[2] for entry in listed.split(b"\0") if entry)


def _default_excludes() -> str:
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111
    return f"{base}/git/ignore"


def _read(path: Path) -> bytes:
    """Empty if it is missing, too large or not a regular file. Git does not follow a link to a `.gitignore` either."""
    try:
        return files.read(path, _LIMIT, follow=path.name != os.fsdecode(IGNORE_FILE))
    except (OSError, ValueError):
        return b""
