"""Which runs are going on: those whose process holds their lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ralph.journal.lock import RunLock, holder_of, is_locked, take_over
from ralph.journal.reader import list_runs

if TYPE_CHECKING:
    from ralph.journal.layout import RunPaths, StatePaths


def is_alive(paths: RunPaths) -> bool:
    return is_locked(paths.lock)


def living(state: StatePaths) -> list[RunPaths]:
    """Oldest first."""
    return [paths for paths in list_runs(state) if is_alive(paths)] if state.runs.is_dir() else []


def directory_lock(state: StatePaths, *, exclusive: bool) -> RunLock:
    """Keeps a run alone in its directory, or among those that do not mind."""
    return RunLock(state.lock, shared=not exclusive, holders=lambda: holders(state))


def holders(state: StatePaths) -> str:
    """The runs that are going on, in words."""
    return "; ".join(holder_of(paths.lock) or f"run {paths.run_id}" for paths in living(state))


def take_over_dead(state: StatePaths) -> list[str]:
    """What is to be told about runs whose process died since somebody last looked; each of them is told once."""
    told = []
    for paths in list_runs(state):
        said = take_over(paths.lock)
        if said is not None:
            told.append(
                f"{said}, had died without a summary: its lock is taken over; "
                f"`ralph run --resume {paths.run_id}` would go on with it"
            )
    return told
