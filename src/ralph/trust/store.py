"""What the user said may be run, directory by directory: hashes in files of their own."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from ralph.errors import RunError
from ralph.system.folders import user_config_dir

try:  # as `random` does: hashlib would load all of OpenSSL, which takes a twentieth of a start
    from _sha2 import sha256  # type: ignore[import-not-found, unused-ignore]
except ImportError:
    try:
        from _sha256 import sha256  # type: ignore[import-not-found, unused-ignore] # its name in Python 3.11
    except ImportError:
        from hashlib import sha256


class Record(msgspec.Struct):
    """One directory. `allowed` has, for each thing that is run, the hashes of what it was when it was allowed."""

    directory: str
    allowed: dict[str, list[str]] = {}
    when: float = 0.0


def folder() -> Path:
    return user_config_dir() / "trust"


def _path(root: Path) -> Path:
    return folder() / f"{digest(os.fsencode(root))[:32]}.json"


def load(root: Path) -> Record:
    """What is allowed in a directory, by its real path; a file that cannot be read allows nothing."""
    root = root.resolve()
    return _read(_path(root), str(root)) or Record(str(root))


def _read(path: Path, directory: str | None = None) -> Record | None:
    try:
        record = msgspec.json.decode(path.read_bytes(), type=Record)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return record if directory in (None, record.directory) else None


def everything() -> list[Record]:
    found = [_read(path) for path in sorted(folder().glob("*.json"))]
    return sorted((r for r in found if r is not None), key=lambda r: r.directory)


def allow(root: Path, things: dict[str, list[str]]) -> None:
    """Adds to what is allowed in a directory. RunError if that cannot be kept."""
    import tempfile

    record = load(root)
    for what, digests in things.items():
        record.allowed[what] = list(dict.fromkeys([*record.allowed.get(what, []), *digests]))
    record.when = time.time()
    place = _path(root.resolve())
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # mkstemp makes it for the user alone (0600); the rename makes it appear whole
        handle, name = tempfile.mkstemp(dir=place.parent, prefix=".new-")
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.encode(record))
        Path(name).replace(place)
    except OSError as error:
        raise RunError(f"what you trust cannot be remembered in {place.parent}: {error.strerror}") from None


def forget(root: Path) -> bool:
    """Whether there was anything to forget."""
    try:
        _path(root.resolve()).unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise RunError(f"{_path(root.resolve())} cannot be removed: {error.strerror}") from None
    return True


def digest(data: bytes) -> str:
    text: str = sha256(data).hexdigest()
    return text
