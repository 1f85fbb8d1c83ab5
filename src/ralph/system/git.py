"""Asking git about a repository that may be a stranger's: its own configuration must not start programs."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_TIMEOUT = 120
#: What is known to be harmless, and to make a difference: files of Git LFS look changed without its filter.
_LFS = frozenset({"git-lfs clean -- %f", "git-lfs filter-process", "git lfs clean -- %f", "git lfs filter-process"})
_NO_PROGRAMS = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "diff.external=", "core.quotepath=off")


def top(workdir: Path) -> str | None:
    """The repository's top, by looking for `.git` upward (a git process costs more than the whole iteration)."""
    for folder in (workdir, *workdir.parents):
        if (folder / ".git").exists():
            return str(folder)
    return None


def ask(place: str, *arguments: str, timeout: float = _TIMEOUT) -> str | None:
    """Git's answer, or None if it has none (not installed, not a repository, no commit)."""
    done = _run(place, (*_NO_PROGRAMS, *_without_filters(place)), arguments, timeout)
    return os.fsdecode(done.stdout) if done is not None and done.returncode == 0 else None


def refusal(workdir: Path) -> str | None:
    """What to tell if git does not want to look at this repository, because it belongs to somebody else."""
    place = top(workdir)
    done = _run(place, _NO_PROGRAMS, ("rev-parse", "--git-dir"), _TIMEOUT) if place else None
    if done is None or b"dubious ownership" not in done.stderr:
        return None
    return (
        f"git does not look at {place}, which belongs to another user: what changes is seen by sizes and times of "
        f"files only. If you trust it: git config --global --add safe.directory '{place}'"
    )


@cache
def _without_filters(place: str) -> tuple[str, ...]:
    """`git status` passes changed files through the filters that the repository's own configuration names."""
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
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k.startswith("GIT_CONFIG_")}
    # An object that is missing is not fetched: the address, and the program that fetches, are the repository's.
    environment = kept | {
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
    flags = [part for setting in settings for part in ("-c", setting)]
    # The work tree is said as well, as core.worktree of a stranger may be anywhere.
    command = ["git", "-C", place, f"--work-tree={place}", *flags, *arguments]
    try:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, timeout=timeout, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
