"""Whose file is it? Somebody else's may say anything, and change at any time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def other_owner(path: Path, top: Path) -> str | None:
    """The name of a file's owner if it is another user; None if it is trusted, or there is no file.

    You and root are trusted. For root itself, so is whoever called sudo, and the owner of the repository's top folder:
    in a container, root often works in a folder that is mounted from outside.
    """
    trusted = {os.geteuid(), 0}
    try:
        if os.geteuid() == 0:
            sudo = os.environ.get("SUDO_UID", "")
            trusted |= {os.stat(top).st_uid, int(sudo) if sudo.isdecimal() else 0}  # noqa: PTH116
        owners = (os.lstat(path).st_uid, os.stat(path).st_uid)  # noqa: PTH116 - of a link, and of what it leads to
    except OSError:
        return None
    return next((_name(owner) for owner in owners if owner not in trusted), None)


def _name(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
