"""The signature in run.json: an HMAC with a key that only the user has, which proves that the user started this run.

A repository may bring its own `.ralph/runs/`, with flags that someone else typed.
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
from ralph.system.folders import make_folder, user_config_dir

if TYPE_CHECKING:
    from ralph.journal.layout import RunPaths

FIELD = "signature"
_KEY_SIZE = 32


def signed(paths: RunPaths, facts: dict[str, Any]) -> dict[str, Any]:
    """The facts with their signature. Where no key can be stored they stay unsigned, and nobody trusts them."""
    plain = {name: value for name, value in facts.items() if name != FIELD}
    key = _key() or _new_key()
    return plain if key is None else plain | {FIELD: _signature(key, paths, plain)}


def is_ours(paths: RunPaths, facts: dict[str, Any]) -> bool:
    """Whether this user wrote these facts, in this place, and nobody changed them since."""
    given, key = facts.get(FIELD), _key()
    if key is None or not isinstance(given, str):
        return False
    plain = {name: value for name, value in facts.items() if name != FIELD}
    return hmac.compare_digest(given.encode("utf-8", "replace"), _signature(key, paths, plain).encode())


def _signature(key: bytes, paths: RunPaths, facts: dict[str, Any]) -> str:
    # Encoded, decoded and encoded again, so that facts to write and facts read back give the same bytes.
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
    """Creates the key. If two runs start at the same time, the first one's key stays."""
    place = _path()
    try:
        make_folder(place.parent)
        handle, name = tempfile.mkstemp(dir=place.parent, prefix=".new-")  # readable by the user only (0600)
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
