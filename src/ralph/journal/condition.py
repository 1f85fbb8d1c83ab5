"""How a run is, and which one is meant."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from ralph.errors import UsageError
from ralph.journal import reader
from ralph.journal.alive import is_alive, living
from ralph.transcripts.meta import Kind

if TYPE_CHECKING:
    from ralph.journal.layout import RunPaths, StatePaths


#: A note may arrive during a pause, and notes may be long.
_TAIL = 1 << 20


class Condition(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    ENDED = "ended"
    DIED = "died"


def condition(paths: RunPaths) -> Condition:
    if is_alive(paths):
        return Condition.PAUSED if is_held(paths) else Condition.RUNNING
    return Condition.DIED if reader.run_end(paths) is None else Condition.ENDED


def is_held(paths: RunPaths) -> bool:
    """Whether the last that the journal says of a pause is that it began."""
    pause = reader.last_meta(paths, Kind.PAUSE, Kind.ITERATION_START, Kind.RUN_RESUME, tail=_TAIL)
    return pause is not None and pause.get("state") == "paused"


def going(state: StatePaths, name: str | None) -> RunPaths:
    """The run that is meant by its id or the beginning of it, or the only one that goes on; it must be alive."""
    if name is not None:
        paths = reader.find_run(state, name)
        if not is_alive(paths):
            raise UsageError(_not_going(paths))
        return paths
    match living(state):
        case [paths]:
            return paths
        case []:
            runs = reader.list_runs(state)
            last = f": {_not_going(runs[-1])}" if runs else ""
            raise UsageError(f"no run is going on in {state.workdir}{last}")
        case several:
            lines = "\n".join(f"  {paths.run_id}  {condition(paths)}" for paths in several)
            raise UsageError(f"{len(several)} runs are going on here; say which one (the beginning will do):\n{lines}")


def _not_going(paths: RunPaths) -> str:
    end = reader.run_end(paths)
    if end is None:
        return f"run {paths.run_id} has died; `ralph run --resume {paths.run_id}` goes on with it"
    how = str(end.get("end"))
    again = "" if how == "complete" else f"; `ralph run --resume {paths.run_id}` goes on with it"
    return f"run {paths.run_id} has ended ({how.replace('_', ' ')}: {end.get('reason')}){again}"
