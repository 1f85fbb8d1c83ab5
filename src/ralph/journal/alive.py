"""Active runs: those whose process holds their lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ralph.journal.lock import RunLock, clear_dead, holder_of, is_locked
from ralph.journal.reader import list_runs

if TYPE_CHECKING:
    from ralph.journal.layout import RunPaths, StatePaths


def is_alive(paths: RunPaths) -> bool:
    return is_locked(paths.lock)


def active_runs(state: StatePaths) -> list[RunPaths]:
    """Oldest first."""
    return [paths for paths in list_runs(state) if is_alive(paths)] if state.runs.is_dir() else []


def directory_lock(state: StatePaths, *, exclusive: bool) -> RunLock:
    """Keeps a run alone in its directory, or together with other runs that are not exclusive."""
    return RunLock(state.lock, directory=state.workdir, shared=not exclusive, holders=lambda: holders(state))


def is_directory_locked(state: StatePaths) -> bool:
    """Whether an exclusive run is active, even if its files were deleted."""
    return is_locked(state.lock) or is_locked(state.workdir)


def holders(state: StatePaths) -> str:
    """The active runs, as text."""
    return "; ".join(holder_of(paths.lock) or f"run {paths.run_id}" for paths in active_runs(state))


def report_dead_runs(state: StatePaths) -> list[str]:
    """A message for each run whose process died. Their locks are cleared, so each run is reported only once."""
    reported = []
    for paths in list_runs(state):
        holder = clear_dead(paths.lock)
        if holder is not None:
            reported.append(
                f"{holder}, died without a summary; its lock was released. "
                f"You can resume it with `ralph run --resume {paths.run_id}`"
            )
    return reported
