"""What changed: snapshots of the working tree (HEAD, index, changed and untracked files) and their differences."""

from __future__ import annotations

import hashlib
import os
import stat
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ralph.config.guards import AND
from ralph.system import git

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: ralph's own files, which are never the agent's progress.
_OURS = (
    *(f".ralph/{name}" for name in (".gitignore", "runs/", "latest", "lock", "ralph-crash-")),
    ".agent/events.jsonl",
    ".agent/.gitignore",
    "last_agent_output",
)
#: A file above the first size is hashed once per version, a file above the second not at all.
_REMEMBER = 1 << 20
_HASH_LIMIT = 512 << 20
_WALK_LIMIT = 20_000


class Snapshot(msgspec.Struct, frozen=True):
    """`files` holds what differs from HEAD (in a repository) or all files (elsewhere), each with a signature."""

    head: str | None
    files: dict[str, str]
    #: the top of the repository, which paths are relative to; None outside git
    top: str | None
    #: the folder, outside git
    root: str = ""

    @property
    def fingerprint(self) -> str:
        digest = hashlib.sha256((self.head or "").encode())
        for name in sorted(self.files):
            digest.update(f"\0{name}\0{self.files[name]}".encode("utf-8", "surrogateescape"))
        return digest.hexdigest()[:16]


class Changes(msgspec.Struct, frozen=True):
    """The difference between two snapshots."""

    files: list[str]
    commits: int
    changed: bool


def take(workdir: Path) -> Snapshot:
    top = git.top(workdir)
    status = (
        git.ask(top, "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--no-renames")
        if top
        else None
    )
    if top is None or status is None:
        return Snapshot(None, dict(_walk(workdir)), None, str(workdir))
    return _from_status(top, status)


def compare(before: Snapshot, after: Snapshot) -> Changes:
    """Files whose content differs, committed or not, and how many commits were added."""
    committed: dict[str, tuple[str, str]] = {}
    commits = 0
    if after.top and before.head != after.head and before.head and after.head:
        committed = dict(_tree_diff(after.top, before.head, after.head))
        count = git.ask(after.top, "rev-list", "--count", f"{before.head}..{after.head}")
        commits = int(count) if count and count.strip().isdigit() else 0
    elif after.top and after.head and not before.head:
        count = git.ask(after.top, "rev-list", "--count", after.head)
        commits = int(count) if count and count.strip().isdigit() else 0
        committed = {name: ("", content) for name, content in _tree(after.top, after.head)}
    now = after.files
    if before.top is None and after.top is not None:  # `git init`: what is committed now may have existed before
        committed = {}
        now = dict(_walk(Path(before.root)))
    files = []
    for name in before.files.keys() | now.keys() | committed.keys():
        old, new = committed.get(name, ("=", "="))
        if _content(before.files.get(name), old) != _content(now.get(name), new):
            files.append(name)
    return Changes(sorted(files), commits, before.fingerprint != after.fingerprint)


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


def _content(signature: str | None, committed: str) -> str:
    """A file's content: in the working tree if it differs there, or else in the commit."""
    return signature.partition(" ")[0] if signature is not None else committed


def _from_status(top: str, status: str) -> Snapshot:
    head: str | None = None
    files: dict[str, str] = {}
    hasher = _Hasher(Path(top), "sha1")
    for entry in status.split("\0"):
        if entry.startswith("# branch.oid "):  # it comes first
            oid = entry.removeprefix("# branch.oid ")
            head = None if oid == "(initial)" else oid
            hasher = _Hasher(Path(top), "sha256" if len(oid) == 64 else "sha1")
            continue
        # 1 XY sub mH mI mW hH hI path · u XY sub m1 m2 m3 mW h1 h2 h3 path · ? path
        match entry[:2]:
            case "1 ":
                fields = entry.split(" ", 8)
                name, index = fields[8], fields[7]
            case "u ":
                fields = entry.split(" ", 10)
                name, index = fields[10], fields[8]
            case "? ":
                name, index = entry[2:], "-"
            case _:
                continue
        if not name.startswith(_OURS):
            files[name] = f"{hasher.content(name)} {index}"
    return Snapshot(head, files, top)


#: hashes of large files by path, inode, size and times
_known: dict[tuple[str, int, int, int, int], str] = {}


class _Hasher:
    """Identifies a file's mode and content the way git does, so that committing it does not look like a change."""

    def __init__(self, top: Path, algorithm: str) -> None:
        self._top = top
        self._algorithm = algorithm

    def content(self, name: str) -> str:
        path = str(self._top / name)
        try:
            info = os.lstat(path)
            match stat.S_IFMT(info.st_mode):
                case stat.S_IFLNK:
                    return f"120000:{self._blob(os.fsencode(os.readlink(path)))}"  # noqa: PTH115
                case stat.S_IFDIR:
                    return f"dir:{info.st_mtime_ns}"  # a nested repository
                case stat.S_IFREG:
                    mode = "100755" if info.st_mode & stat.S_IXUSR else "100644"
                    return f"{mode}:{self._file(path, info)}"
        except OSError:
            return ""
        return "special"

    def _file(self, path: str, info: os.stat_result) -> str:
        if info.st_size > _HASH_LIMIT:
            return f"{info.st_size}:{info.st_mtime_ns}"
        if info.st_size <= _REMEMBER:
            with open(path, "rb") as file:
                return self._blob(file.read())
        key = (path, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
        if key not in _known:
            digest = hashlib.new(self._algorithm, b"blob %d\0" % info.st_size, usedforsecurity=False)
            with open(path, "rb") as file:
                while chunk := file.read(_REMEMBER):
                    digest.update(chunk)
            _known[key] = digest.hexdigest()
        return _known[key]

    def _blob(self, data: bytes) -> str:
        return hashlib.new(self._algorithm, b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _tree_diff(top: str, old: str, new: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """(path, (content before, content after)), as `_Hasher` has it; empty for a file that does not exist."""
    raw = git.ask(top, "diff-tree", "-r", "-z", "--no-renames", "--full-index", old, new) or ""
    fields = raw.split("\0")
    for info, name in zip(fields[0::2], fields[1::2], strict=False):
        parts = info.removeprefix(":").split(" ")
        if len(parts) >= 5 and not name.startswith(_OURS):
            yield name, (_named(parts[0], parts[2]), _named(parts[1], parts[3]))


def _named(mode: str, blob: str) -> str:
    return f"{mode}:{blob}" if blob.strip("0") else ""


def _tree(top: str, commit: str) -> Iterator[tuple[str, str]]:
    for entry in (git.ask(top, "ls-tree", "-r", "-z", commit) or "").split("\0"):
        info, _, name = entry.partition("\t")
        if name and not name.startswith(_OURS):
            mode, _, blob = info.split(" ")
            yield name, _named(mode, blob)


def _walk(root: Path) -> Iterator[tuple[str, str]]:
    """Outside git: every file by size and time, up to a limit."""
    count = 0
    for folder, folders, names in os.walk(root):
        base = Path(folder)
        relative = base.relative_to(root).as_posix()
        prefix = "" if relative == "." else relative + "/"
        folders[:] = sorted(
            f for f in folders if f not in (".git", "node_modules", ".venv") and not f"{prefix}{f}/".startswith(_OURS)
        )
        for name in sorted(names):
            path = prefix + name
            if path.startswith(_OURS):
                continue
            try:
                info = (base / name).lstat()
            except OSError:
                continue
            yield path, f"{info.st_size}:{info.st_mtime_ns}"
            count += 1
            if count >= _WALK_LIMIT:
                return
