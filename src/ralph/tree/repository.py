"""A repository's own state: its HEAD, what is staged. Read from files where that is enough, without starting git."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import msgspec

from ralph.system import files, git

_LIMIT = 1 << 20
#: Seconds for an answer of git.
_TIMEOUT = 10.0


class GitFolders(msgspec.Struct, frozen=True):
    #: with HEAD and the index of this working tree
    own: str
    #: with the references of all working trees
    common: str


class State(msgspec.Struct, frozen=True):
    """`head` is a commit, empty where there is none yet or no repository, and None if it cannot be told."""

    head: str | None = ""
    #: equal as long as HEAD is
    reference: str = ""
    #: equal as long as the same contents are staged
    staged: str | None = ""


def git_folders(place: str) -> GitFolders | None:
    """Where the repository with its top at `place` keeps its files. None if there is no repository."""
    found = Path(place) / ".git"
    if not found.is_dir():
        pointer = _text(found)
        if not pointer.startswith("gitdir: "):
            return None
        found = found.parent / pointer.removeprefix("gitdir: ").rstrip("\n")
    if not os.path.lexists(found / "HEAD"):
        return None
    common = _text(found / "commondir").rstrip("\n")
    return GitFolders(str(found), str(found / common) if common else str(found))


class Repository:
    """Asks git only if a file that matters is not what it was."""

    def __init__(self, place: str) -> None:
        self._place = place
        #: git did not answer in time, so it is not asked again
        self._hangs = False
        self._state = State()
        #: the identity of the index; None before it is first looked at
        self._index: tuple[int, ...] | None = None
        #: the entries of the index as git last listed them; None if it could not
        self.listed: bytes | None = None

    def state(self) -> State:
        folders = git_folders(self._place)
        if folders is None:
            self._state, self._index = State(), None
            return self._state
        reference, index = reference_of(folders), _identity(f"{folders.own}/index")
        head, staged = self._state.head, self._state.staged
        if reference != self._state.reference or head is None:
            head = self._head()
        if index != self._index or staged is None:
            staged = self._staged()
        self._state, self._index = State(head, reference, staged), index
        return self._state

    def commits_between(self, old: State, new: State) -> int | None:
        """How many commits `new` has that `old` does not have. None if it cannot be told."""
        if old.reference == new.reference:
            return 0
        if old.head is None or not new.head:
            return None
        if old.head == new.head:
            return 0
        wanted = f"{old.head}..{new.head}" if old.head else new.head
        count = self._ask("rev-list", "--count", wanted, "--")
        return int(count) if count and count.strip().isdigit() else None

    def _ask(self, *arguments: str) -> str | None:
        if self._hangs:
            return None
        began = time.monotonic()
        answer = git.ask(self._place, *arguments, timeout=_TIMEOUT)
        self._hangs = answer is None and time.monotonic() - began >= _TIMEOUT
        return answer

    def _head(self) -> str | None:
        found = self._ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        if found is not None:
            return found.strip()
        # No commit yet, or git cannot read it.
        unborn = self._ask("rev-parse", "--git-dir") is not None
        return "" if unborn and self._unborn() else None

    def _unborn(self) -> bool:
        """Whether HEAD names a branch without a commit, and not one whose commit is missing."""
        name = self._ask("symbolic-ref", "--quiet", "HEAD")
        if name is None:
            return False
        return self._ask("show-ref", "--verify", "--quiet", name.strip()) is None

    def _staged(self) -> str | None:
        listed = self._ask("ls-files", "-s", "-z")
        self.listed = None if listed is None else os.fsencode(listed)
        return None if self.listed is None else hashlib.sha256(self.listed).hexdigest()[:32]


def list_index(place: str) -> bytes | None:
    """Mode, content, stage and path of every entry of the index. None if git cannot read the repository."""
    return git.ask_bytes(place, "ls-files", "-s", "-z")


def reference_of(folders: GitFolders) -> str:
    """A text that differs if HEAD is another commit."""
    head = _text(Path(folders.own) / "HEAD")
    name = head.removeprefix("ref: ").strip()
    parts = [head]
    if head.startswith("ref: ") and not name.startswith("/") and ".." not in name:
        value = _text(Path(folders.common) / name) or _text(Path(folders.own) / name)
        parts.append(value or str(_identity(f"{folders.common}/packed-refs")))
        parts.append(_text(Path(folders.common) / "reftable" / "tables.list"))
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _text(path: Path) -> str:
    try:
        return files.read(path, _LIMIT).decode("utf-8", "surrogateescape")
    except (OSError, ValueError):
        return ""


def _identity(path: str) -> tuple[int, ...]:
    try:
        info = os.lstat(path)
    except (OSError, ValueError):
        return ()
    return info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns
