"""What the user has approved, directory by directory: digests in files of their own."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ralph.errors import RunError
from ralph.system.digest import digest
from ralph.system.folders import user_config_dir
from ralph.trust.items import file_digest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ralph.trust.items import Item


class Record(msgspec.Struct):
    """One directory. `allowed` maps each thing to the digests that it had when it was approved."""

    directory: str
    allowed: dict[str, list[str]] = {}
    when: float = 0.0


def remembered(wanted: Iterable[Item]) -> list[Item]:
    """Those of the items that are approved as they are now."""
    wanted = list(wanted)
    records = {root: load(root).allowed for root in {item.root for item in wanted}}
    return [item for item in wanted if _allows(records[item.root], item)]


def _allows(allowed: dict[str, list[str]], item: Item) -> bool:
    if item.digest in allowed.get(item.what, ()):
        return True
    # A configuration that ralph wrote itself is approved as a whole, until somebody changes it.
    return item.source is not None and file_digest(item.source) in allowed.get(_whole(item.source), ())


def is_changed(item: Item) -> bool:
    """Whether another version of it was approved."""
    before = load(item.root).allowed.get(item.what, [])
    return bool(before) and item.digest not in before


def remember(items: Iterable[Item]) -> None:
    """Approve these as they are now, until they change. RunError if that cannot be stored."""
    by_root: dict[Path, dict[str, list[str]]] = {}
    for item in items:
        by_root.setdefault(item.root, {}).setdefault(item.what, []).append(item.digest)
    for root, things in by_root.items():
        _allow(root, things)


def remember_file(path: Path) -> None:
    """Approve all commands in a file that ralph wrote for its user, until somebody changes it."""
    _allow(path.parent, {_whole(path): [file_digest(path)]})


def load(root: Path) -> Record:
    """What is approved in a directory, by its real path; an unreadable record approves nothing."""
    root = root.resolve()
    return _read(_path(root), str(root)) or Record(str(root))


def everything() -> list[Record]:
    found = [_read(path) for path in sorted(folder().glob("*.json"))]
    return sorted((r for r in found if r is not None), key=lambda r: r.directory)


def forget(root: Path) -> bool:
    """Whether there was anything to forget."""
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


def _whole(source: Path) -> str:
    return f"all of {source.name}"


def _read(path: Path, directory: str | None = None) -> Record | None:
    try:
        record = msgspec.json.decode(path.read_bytes(), type=Record)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return record if directory in (None, record.directory) else None


def _allow(root: Path, things: dict[str, list[str]]) -> None:
    import tempfile

    before = load(root)
    allowed = {**before.allowed}
    for what, digests in things.items():
        allowed[what] = list(dict.fromkeys([*allowed.get(what, []), *digests]))
    record = Record(before.directory, allowed, time.time())
    place = _path(root.resolve())
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # mkstemp makes it readable for the user alone (0600); the rename makes it appear whole.
        handle, name = tempfile.mkstemp(dir=place.parent, prefix=".new-")
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.encode(record))
        Path(name).replace(place)
    except OSError as error:
        raise RunError(f"your approval cannot be stored in {place.parent}: {error.strerror}") from None
