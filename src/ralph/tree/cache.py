"""Signatures of the files of large trees, in the user's state folder: the next run need not read them all again."""

from __future__ import annotations

import os
import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from ralph.system.digest import digest
from ralph.system.files import read
from ralph.system.folders import user_state_dir
from ralph.tree.walk import Known  # noqa: TC001 - msgspec reads it

if TYPE_CHECKING:
    from pathlib import Path

_VERSION = 1
_LIMIT = 512 << 20
#: Seconds after which a tree that was not looked at is forgotten.
_FORGET = 60 * 24 * 3600.0


class _Stored(msgspec.Struct, array_like=True):
    version: int
    root: bytes
    known: Known


def load(root: str) -> Known:
    try:
        stored = msgspec.msgpack.decode(read(_path(root), _LIMIT, follow=False), type=_Stored)
    except (OSError, msgspec.MsgspecError):
        return {}
    return stored.known if (stored.version, stored.root) == (_VERSION, _real(root)) else {}


def save(root: str, known: Known) -> None:
    """Without it, the next run is slower, and nothing else: a full disk or a missing home is no error."""
    with suppress(OSError, msgspec.MsgspecError):
        body = msgspec.msgpack.encode(_Stored(_VERSION, _real(root), known))
        path = _path(root)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _forget_old(path.parent)
        temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        try:
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.write(body)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def _path(root: str) -> Path:
    return user_state_dir() / "trees" / digest(_real(root))[:32]


def _real(root: str) -> bytes:
    return os.fsencode(os.path.realpath(root))


def _forget_old(folder: Path) -> None:
    for path in folder.iterdir():
        if path.lstat().st_mtime < time.time() - _FORGET:
            path.unlink(missing_ok=True)
