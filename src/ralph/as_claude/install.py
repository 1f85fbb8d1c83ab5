"""Writes a program that runs `ralph as-claude` with fixed flags, for tools that accept only the path of a program."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from ralph.errors import UsageError
from ralph.system import files
from ralph.system.folders import create_file, make_folder

_SIGN = "# Written by `ralph as-claude --install`."


def install(path: str, arguments: list[str]) -> Path:
    """Returns the path of the program. UsageError if there is a file that this command did not write."""
    program = Path(os.path.abspath(os.path.expanduser(path)))  # noqa: PTH100, PTH111 - keeps links as they are
    call = shlex.join([sys.executable, "-P", "-m", "ralph", "as-claude", *arguments])
    try:
        if os.path.lexists(program) and not _ours(program):
            raise UsageError(f"{program} exists and is not such a program: choose another path for --install")
        make_folder(program.parent, 0o755)
        new = program.with_name(f".{program.name}.{os.getpid()}")
        create_file(new, os.fsencode(f'#!/bin/sh\n{_SIGN}\nexec {call} "$@"\n'), 0o755)
        new.replace(program)
    except OSError as error:
        raise UsageError(f"cannot write {program}: {error.strerror}") from error
    return program


def _ours(program: Path) -> bool:
    try:
        return _SIGN in files.read_text(program)
    except OSError:
        return False
