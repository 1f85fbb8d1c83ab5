"""Random edits in a tree: the comparison names exactly the paths whose content or mode differs.

The input is a list of edits, three bytes each. What differs is also found in the simplest way: by reading everything.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TypeAlias

from fuzz.checks import require
from fuzz.files import isolated
from ralph.tree.inspector import Inspector

_NAMES = (
    "a",
    "b",
    "c.log",
    "build",
    "d",
    "d/a",
    "d/build/x",
    "d/e/f",
    "d/e/b.log",
    ".gitignore",
    "d/.gitignore",
    "é\n",
)
_TEXTS = (b"", b"1", b"2", b"*\n", b"!*.log\n", b"x" * 70000)
_START = {"a": b"1", "c.log": b"1", "d/a": b"2", "d/e/f": b"1", "build/kept": b"1"}
_IGNORE = b"*.log\nbuild/\n"
_MOST = 40
_Entries: TypeAlias = dict[str, tuple[str, bytes, int]]


def check(data: bytes) -> None:
    in_git = bool(data[:1]) and data[0] % 4 == 0
    root = _prepared(in_git=in_git)
    edits = data[1 : 1 + 3 * _MOST]
    half = len(edits) // 6 * 3
    _apply(root, edits[:half])
    for path in (root / ".gitignore", root / "d" / ".gitignore", root / ".git" / "info"):
        _remove(path)
    (root / ".gitignore").write_bytes(_IGNORE)
    inspector = Inspector(root)
    before, were = inspector.take(), _read(root, in_git=in_git)
    _apply(root, edits[half:])
    after, now = inspector.take(), _read(root, in_git=in_git)
    wanted = sorted(name for name in were.keys() | now.keys() if were.get(name) != now.get(name))
    found = inspector.compare(before, after)
    require(found.files == wanted, "the changed files are those that differ", found.files, wanted)
    require(found.changed or not wanted, "a changed file is a change", found)
    again = inspector.compare(after, inspector.take())
    require(not again.changed, "without an edit nothing changed", again)
    fresh = Inspector(root, first=before)
    require(fresh.compare(before, fresh.take()).files == wanted, "a resumed run finds the same", wanted)


@cache
def _repository() -> Path:
    root = isolated().parent / "tree"
    root.mkdir()
    subprocess.run(["git", "init", "-q", "--template=", str(root)], check=True)
    return root


def _prepared(*, in_git: bool) -> Path:
    """The same small tree each time."""
    root = _repository() if in_git else isolated().parent / "plain"
    (root / ".git").mkdir(parents=True, exist_ok=True)  # an empty one is no repository, but its folder is the root
    for path in root.iterdir():
        _remove(path / "info" if path.name == ".git" else path)
    for name, text in _START.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text)
    return root


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()


def _apply(root: Path, edits: bytes) -> None:
    for at in range(0, len(edits) - 2, 3):
        path = root / _NAMES[edits[at + 1] % len(_NAMES)]
        if path.is_fifo() and edits[at] % 10 < 3:
            continue  # writing to it would wait for a reader
        with suppress(OSError, shutil.Error):  # an edit that is not possible
            _edit(root, edits[at], path, edits[at + 2])


def _edit(root: Path, kind: int, path: Path, value: int) -> None:
    match kind % 10:
        case 0 | 1:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(_TEXTS[value % len(_TEXTS)])
        case 2:  # of the same size, with the same time
            info, text = path.stat(), path.read_bytes()
            path.write_bytes(bytes(byte ^ 1 for byte in text))
            os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
        case 3:
            _remove(path)
        case 4:
            path.chmod(path.lstat().st_mode ^ stat.S_IXUSR)
        case 5:
            path.symlink_to(_NAMES[value % len(_NAMES)])
        case 6:
            path.rename(root / _NAMES[value % len(_NAMES)])
        case 7:
            os.mkfifo(path)
        case 8:
            os.utime(path, (value, value), follow_symlinks=False)
        case 9:
            _exclude(root, value)


def _exclude(root: Path, value: int) -> None:
    if (root / ".git" / "HEAD").is_file():
        (root / ".git" / "info").mkdir(exist_ok=True)
        (root / ".git" / "info" / "exclude").write_bytes(_TEXTS[value % len(_TEXTS)])


def _read(root: Path, *, in_git: bool) -> _Entries:
    found: _Entries = {}
    for folder, folders, names in os.walk(root):
        here = os.path.relpath(folder, root)
        links = [f for f in folders if Path(folder, f).is_symlink()]
        ignored = [f for f in folders if in_git and (f == "build" or f.endswith(".log"))]
        folders[:] = [f for f in folders if (here, f) != (".", ".git") and f not in ignored]
        for name in (*names, *links):
            if not (in_git and name.endswith(".log")):
                found[os.path.normpath(f"{here}/{name}")] = _entry(Path(folder, name))
    return found


def _entry(path: Path) -> tuple[str, bytes, int]:
    info = path.lstat()
    if stat.S_ISLNK(info.st_mode):
        return "link", os.fsencode(path.readlink()), 0
    if stat.S_ISREG(info.st_mode):
        return "file", path.read_bytes(), info.st_mode & stat.S_IXUSR
    return "special", b"", 0
