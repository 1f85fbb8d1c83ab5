"""Asking git about a repository that someone else may control: its configuration must not start programs."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from typing import TYPE_CHECKING

from ralph.system.programs import search_path, which

if TYPE_CHECKING:
    from pathlib import Path

_TIMEOUT = 120
#: Filters that are harmless and needed: without them, files of Git LFS look changed.
_LFS = frozenset({"git-lfs clean -- %f", "git-lfs filter-process", "git lfs clean -- %f", "git lfs filter-process"})
_NO_PROGRAMS = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "diff.external=", "core.quotepath=off")
#: What git needs of the user's environment. Anything else, such as a key, is not its business.
_VARIABLES = frozenset({"HOME", "PATH", "TMPDIR", "USER", "XDG_CONFIG_HOME"})


def top(workdir: Path) -> str | None:
    """The top folder of the repository: the nearest one with a `.git`. Faster than asking git."""
    for folder in (workdir, *workdir.parents):
        if (folder / ".git").exists():
            return str(folder)
    return None


def ask(place: str, *arguments: str, timeout: float = _TIMEOUT) -> str | None:
    """The output of a git command, or None if it fails (not installed, not a repository, no commit)."""
    done = _run(place, (*_NO_PROGRAMS, *_without_filters(place)), arguments, timeout)
    return os.fsdecode(done.stdout) if done is not None and done.returncode == 0 else None


def refusal(workdir: Path) -> str | None:
    """A message for the user if git refuses to read this repository because another user owns it."""
    place = top(workdir)
    done = _run(place, _NO_PROGRAMS, ("rev-parse", "--git-dir"), _TIMEOUT) if place else None
    if done is None or b"dubious ownership" not in done.stderr:
        return None
    return (
        f"git refuses to read {place}, because another user owns it. Changes are detected by the size and time of "
        f"files only. If you trust it: git config --global --add safe.directory '{place}'"
    )


@cache
def _without_filters(place: str) -> tuple[str, ...]:
    """Settings that disable the repository's own filters, which `git status` would run on changed files."""
    done = _run(place, _NO_PROGRAMS, ("config", "--list", "--show-scope", "-z"), _TIMEOUT)
    if done is None or done.returncode:
        return ()
    fields = os.fsdecode(done.stdout).split("\0")
    found: list[str] = []
    for scope, entry in zip(fields[0::2], fields[1::2], strict=False):
        name, _, value = entry.partition("\n")
        is_filter = name.startswith("filter.") and name.endswith((".clean", ".process"))
        if is_filter and scope in ("local", "worktree") and value not in _LFS:
            driver = name.rpartition(".")[0]
            found += [f"{driver}.clean=", f"{driver}.process=", f"{driver}.required=false"]
    return tuple(dict.fromkeys(found))


def _run(
    place: str, settings: tuple[str, ...], arguments: tuple[str, ...], timeout: float
) -> subprocess.CompletedProcess[bytes] | None:
    kept = {k: v for k, v in os.environ.items() if k in _VARIABLES or k.startswith("GIT_CONFIG_")}
    kept["PATH"] = search_path()
    # Missing objects are not fetched: the repository chooses the address, and the program that fetches.
    environment = kept | {
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
    flags = [part for setting in settings for part in ("-c", setting)]
    # --work-tree, because core.worktree of the repository may point anywhere.
    program = which("git")
    if program is None:
        return None
    command = [program, "-C", place, f"--work-tree={place}", *flags, *arguments]
    try:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, timeout=timeout, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
