"""Asking git about a repository that someone else may control.

Only for commands that read neither the working tree nor its attributes (`rev-parse`, `rev-list`, `ls-files`, `config`):
these run no program that the repository's configuration names.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ralph.system import short
from ralph.system.programs import search_path, which

if TYPE_CHECKING:
    from pathlib import Path

#: Seconds. Nothing that is asked here takes long, unless a pipe stands in the place of one of git's files.
_TIMEOUT = 10.0
_SETTINGS = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "core.quotepath=off", "core.commitGraph=false")
#: What git needs of the user's environment. Anything else, such as a key, is not its business.
_VARIABLES = frozenset({"HOME", "PATH", "TMPDIR", "USER", "XDG_CONFIG_HOME"})


def top(workdir: Path) -> str | None:
    """The top folder of the repository: the nearest one with a `.git`. Faster than asking git."""
    for folder in (workdir, *workdir.parents):
        if (folder / ".git").exists():
            return str(folder)
    return None


def ask(place: str, *arguments: str, timeout: float = _TIMEOUT) -> str | None:
    """The output of a git command; None if it fails (not installed, not a repository, no commit) or is interrupted."""
    output = ask_bytes(place, *arguments, timeout=timeout)
    return None if output is None else os.fsdecode(output)


def ask_bytes(place: str, *arguments: str, timeout: float = _TIMEOUT) -> bytes | None:
    """Like `ask`, for output with file names in it."""
    done = _run(place, arguments, timeout)
    return done.stdout if done is not None and done.status == 0 else None


def refusal(workdir: Path) -> str | None:
    """A message for the user if git refuses to read this repository because another user owns it."""
    place = top(workdir)
    done = _run(place, ("rev-parse", "--git-dir"), _TIMEOUT) if place else None
    if done is None or b"dubious ownership" not in done.stderr:
        return None
    return (
        f"git refuses to read {place}, because another user owns it. Files are compared, but commits are not counted, "
        f"and ignored files count as changed. If you trust it: git config --global --add safe.directory '{place}'"
    )


def _run(place: str, arguments: tuple[str, ...], timeout: float) -> short.Finished | None:
    flags = [part for setting in _SETTINGS for part in ("-c", setting)]
    # --work-tree, because core.worktree of the repository may point anywhere.
    program = which("git")
    if program is None:
        return None
    command = [program, "-C", place, f"--work-tree={place}", *flags, *arguments]
    try:
        return short.run(command, timeout=timeout, env=_environment(place))
    except OSError:
        return None


def _environment(place: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k in _VARIABLES or k.startswith("GIT_CONFIG_")}
    return kept | {
        "PATH": search_path(),
        # A repository above this one is not the one that was asked about.
        "GIT_CEILING_DIRECTORIES": os.path.dirname(place),  # noqa: PTH120
        # Missing objects are not fetched: the repository chooses the address, and the program that fetches.
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        # History as it is, not as `git replace` or grafts present it.
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_GRAFT_FILE": os.devnull,
        "LC_ALL": "C",
    }
