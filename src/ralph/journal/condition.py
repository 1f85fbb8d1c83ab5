"""The condition of a run, and finding the active run that a user means."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from ralph.errors import UsageError
from ralph.journal import reader
from ralph.journal.alive import active_runs, is_alive
from ralph.transcripts.meta import Kind

if TYPE_CHECKING:
    from ralph.journal.layout import RunPaths, StatePaths


#: How far back to look for a pause. Notes may arrive during a pause, and they may be long.
_TAIL = 1 << 20


class Condition(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    ENDED = "ended"
    DIED = "died"


def condition(paths: RunPaths) -> Condition:
    if is_alive(paths):
        return Condition.PAUSED if is_paused(paths) else Condition.RUNNING
    return Condition.DIED if reader.run_end(paths) is None else Condition.ENDED


def is_paused(paths: RunPaths) -> bool:
    """Whether, according to the journal, a pause has begun and not ended."""
    pause = reader.last_meta(paths, Kind.PAUSE, Kind.ITERATION_START, Kind.RUN_RESUME, tail=_TAIL)
    return pause is not None and pause.get("state") == "paused"


def active_run(state: StatePaths, name: str | None) -> RunPaths:
    """The active run with this id or id prefix; without a name, the only active run."""
    if name is not None:
        paths = reader.find_run(state, name)
        if not is_alive(paths):
            raise UsageError(_not_active(paths))
        return paths
    match active_runs(state):
        case [paths]:
            return paths
        case []:
            runs = reader.list_runs(state)
            last = f": {_not_active(runs[-1])}" if runs else ""
            raise UsageError(f"no run is active in {state.workdir}{last}")
        case several:
            lines = "\n".join(f"  {paths.run_id}  {condition(paths)}" for paths in several)
            raise UsageError(f"{len(several)} runs are active here; name one of them (a prefix is enough):\n{lines}")


def _not_active(paths: RunPaths) -> str:
    end = reader.run_end(paths)
    if end is None:
        return f"run {paths.run_id} died; you can resume it with `ralph run --resume {paths.run_id}`"
    how = str(end.get("end"))
    resume = "" if how == "complete" else f"; you can resume it with `ralph run --resume {paths.run_id}`"
    return f"run {paths.run_id} has ended ({how.replace('_', ' ')}: {end.get('reason')}){resume}"
