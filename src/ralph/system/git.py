"""Asking git about a repository that someone else may control.

Only for commands that read neither the working tree nor its attributes (`rev-parse`, `rev-list`, `ls-files`, `config`):
these run no program that the repository's configuration names.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: Seconds. Nothing that is asked here takes long, unless a pipe stands in the place of one of git's files.
_TIMEOUT = 10.0
#: How often a stop is checked for while git runs, in seconds.
_CHECK_EVERY = 0.2
#: How long it may run if the user has asked to stop, in seconds.
_STOPPED = 3.0
_SETTINGS = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "core.quotepath=off", "core.commitGraph=false")
#: What git needs of the user's environment. Anything else, such as a key, is not its business.
_VARIABLES = frozenset({"HOME", "PATH", "TMPDIR", "USER", "XDG_CONFIG_HOME"})


def top(workdir: Path) -> str | None:
    """The top folder of the repository: the nearest one with a `.git`. Faster than asking git."""
    for folder in (workdir, *workdir.parents):
        if (folder / ".git").exists():
            return str(folder)
    return None


def ask(
    place: str, *arguments: str, timeout: float = _TIMEOUT, stopped: Callable[[], bool] = lambda: False
) -> str | None:
    """The output of a git command, or None if it fails (not installed, not a repository, no commit) or is `stopped`."""
    output = ask_bytes(place, *arguments, timeout=timeout, stopped=stopped)
    return None if output is None else os.fsdecode(output)


def ask_bytes(
    place: str, *arguments: str, timeout: float = _TIMEOUT, stopped: Callable[[], bool] = lambda: False
) -> bytes | None:
    """Like `ask`, for output with file names in it."""
    done = _run(place, arguments, timeout, stopped)
    return done.stdout if done is not None and done.returncode == 0 else None


def refusal(workdir: Path) -> str | None:
    """A message for the user if git refuses to read this repository because another user owns it."""
    place = top(workdir)
    done = _run(place, ("rev-parse", "--git-dir"), _TIMEOUT, lambda: False) if place else None
    if done is None or b"dubious ownership" not in done.stderr:
        return None
    return (
        f"git refuses to read {place}, because another user owns it. Files are compared, but commits are not counted, "
        f"and ignored files count as changed. If you trust it: git config --global --add safe.directory '{place}'"
    )


def _run(
    place: str, arguments: tuple[str, ...], timeout: float, stopped: Callable[[], bool]
) -> subprocess.CompletedProcess[bytes] | None:
    """Starts git; no other function does. At the deadline, it and everything that it started is killed."""
    flags = [part for setting in _SETTINGS for part in ("-c", setting)]
    # --work-tree, because core.worktree of the repository may point anywhere.
    command = ["git", "-C", place, f"--work-tree={place}", *flags, *arguments]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(place),
            start_new_session=True,
        )
    except OSError:
        return None
    began = time.monotonic()
    with process:
        while True:
            try:
                output, errors = process.communicate(timeout=_CHECK_EVERY)
            except subprocess.TimeoutExpired:
                took = time.monotonic() - began
                if took >= timeout or (took >= _STOPPED and stopped()):
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    return None
            else:
                return subprocess.CompletedProcess(command, process.returncode, output, errors)


def _environment(place: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k in _VARIABLES or k.startswith("GIT_CONFIG_")}
    return kept | {
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
