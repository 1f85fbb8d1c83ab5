"""What proves that a run was made here, by this user: run.json carries a hash with a key that only the user has.

A repository may bring a `.ralph/runs/` of its own making; the flags in it were typed by somebody else.
"""

from __future__ import annotations

import hmac
import os
import secrets
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ralph.system.files import read
from ralph.system.folders import user_config_dir

if TYPE_CHECKING:
    from ralph.journal.layout import RunPaths

FIELD = "seal"
_KEY_SIZE = 32


def sealed(paths: RunPaths, facts: dict[str, Any]) -> dict[str, Any]:
    """The facts with their seal; without one where no key can be kept: then they are as good as a stranger's."""
    plain = {name: value for name, value in facts.items() if name != FIELD}
    key = _key() or _new_key()
    return plain if key is None else plain | {FIELD: _seal(key, paths, plain)}


def is_ours(paths: RunPaths, facts: dict[str, Any]) -> bool:
    """Whether these facts are as this user wrote them, in this place."""
    given, key = facts.get(FIELD), _key()
    if key is None or not isinstance(given, str):
        return False
    plain = {name: value for name, value in facts.items() if name != FIELD}
    return hmac.compare_digest(given.encode("utf-8", "replace"), _seal(key, paths, plain).encode())


def _seal(key: bytes, paths: RunPaths, facts: dict[str, Any]) -> str:
    # Decoded and encoded once more: what was written and what is read must be the same bytes.
    value = msgspec.json.decode(msgspec.json.encode(facts, enc_hook=str))
    place = os.fsencode(os.path.realpath(paths.root))
    return hmac.new(key, place + b"\0" + msgspec.json.encode(value), "sha256").hexdigest()


def _path() -> Path:
    return user_config_dir() / "trust" / "key"


def _key() -> bytes | None:
    try:
        key = read(_path(), 1 << 10)
    except OSError:
        return None
    return key if len(key) == _KEY_SIZE else None


def _new_key() -> bytes | None:
    """Two runs may start at once: the first key stays."""
    place = _path()
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=place.parent, prefix=".new-")  # for the user alone (0600)
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(_KEY_SIZE))
        try:
            os.link(name, place)
        except FileExistsError:
            pass
        finally:
            Path(name).unlink()
    except OSError:
        return None
    return _key()
