"""Stores what the user has approved: one file per directory, with digests."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ralph.errors import RunError
from ralph.system.digest import digest
from ralph.system.folders import make_folder, user_config_dir
from ralph.trust.items import file_digest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ralph.trust.items import Item


class Record(msgspec.Struct):
    """The approvals for one directory. `allowed` maps each item to the digests that it had when it was approved."""

    directory: str
    allowed: dict[str, list[str]] = {}
    when: float = 0.0


def remembered(wanted: Iterable[Item]) -> list[Item]:
    """The items that are approved with their current content."""
    wanted = list(wanted)
    records = {root: load(root).allowed for root in {item.root for item in wanted}}
    return [item for item in wanted if _allows(records[item.root], item)]


def _allows(allowed: dict[str, list[str]], item: Item) -> bool:
    if item.digest in allowed.get(item.what, ()):
        return True
    # A configuration that ralph wrote itself is approved as a whole until somebody changes it.
    return item.source is not None and file_digest(item.source) in allowed.get(_all_of(item.source), ())


def is_changed(item: Item) -> bool:
    """Whether an approval exists, but for another content."""
    before = load(item.root).allowed.get(item.what, [])
    return bool(before) and item.digest not in before


def remember(items: Iterable[Item]) -> None:
    """Approves these items until they change. RunError if that cannot be stored."""
    by_root: dict[Path, dict[str, list[str]]] = {}
    for item in items:
        by_root.setdefault(item.root, {}).setdefault(item.what, []).append(item.digest)
    for root, digests in by_root.items():
        _allow(root, digests)


def remember_file(path: Path) -> None:
    """Approves all commands in a file that ralph wrote for the user, until somebody changes it."""
    _allow(path.parent, {_all_of(path): [file_digest(path)]})


def load(root: Path) -> Record:
    """The approvals for a directory, found by its real path. An unreadable record approves nothing."""
    root = root.resolve()
    return _read(_path(root), str(root)) or Record(str(root))


def everything() -> list[Record]:
    found = [_read(path) for path in sorted(folder().glob("*.json"))]
    return sorted((r for r in found if r is not None), key=lambda r: r.directory)


def forget(root: Path) -> bool:
    """Deletes the approvals for a directory; returns whether there were any."""
    path = _path(root.resolve())
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise RunError(f"{path} cannot be removed: {error.strerror}") from None
    return True


def folder() -> Path:
    return user_config_dir() / "trust"


def _path(root: Path) -> Path:
    return folder() / f"{digest(os.fsencode(root))[:32]}.json"


def _all_of(source: Path) -> str:
    return f"all of {source.name}"


def _read(path: Path, directory: str | None = None) -> Record | None:
    try:
        data = path.read_bytes()
    except OSError:
        return None
    import json  # late: a start without approvals does not need it

    try:
        # Not msgspec: the paths and commands in it may not be UTF-8.
        record = msgspec.convert(json.loads(data), Record)
    except (ValueError, RecursionError):
        return None
    return record if directory in (None, record.directory) else None


def _allow(root: Path, approved: dict[str, list[str]]) -> None:
    import json
    import tempfile

    before = load(root)
    allowed = {**before.allowed}
    for what, digests in approved.items():
        allowed[what] = list(dict.fromkeys([*allowed.get(what, []), *digests]))
    record = Record(before.directory, allowed, time.time())
    place = _path(root.resolve())
    try:
        make_folder(place.parent)
        # mkstemp makes the file private (0600); the rename replaces the old one in one step.
        handle, name = tempfile.mkstemp(dir=place.parent, prefix=".new-")
        with os.fdopen(handle, "wb") as file:
            file.write(json.dumps(msgspec.to_builtins(record)).encode("ascii"))
        Path(name).replace(place)
    except OSError as error:
        raise RunError(f"your approval cannot be stored in {place.parent}: {error.strerror}") from None
