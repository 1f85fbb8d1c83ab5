"""Reading runs, also one that is being written or was cut short."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from ralph.errors import UsageError, nearest
from ralph.journal.layout import RunPaths, StatePaths
from ralph.system.files import open_regular, read, repository
from ralph.transcripts.events import EventError, Meta, TranscriptEvent, decode
from ralph.transcripts.meta import Kind
from ralph.trust.approval import required
from ralph.trust.items import of_journal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ralph.trust.approval import Trust


#: A line of an agent's, each byte of it escaped, is not longer.
_MAX_LINE = 400 << 20
_MAX_FACTS = 64 << 20


class Stamp(msgspec.Struct, frozen=True):
    """What the journal adds to an event."""

    seq: int
    time: float
    iteration: int


class Record(msgspec.Struct, frozen=True):
    stamp: Stamp
    event: TranscriptEvent
    line: bytes


_stamp_decoder = msgspec.json.Decoder(Stamp)


def parse(line: bytes) -> Record | None:
    """One line of events.jsonl; None for a torn one (the run was killed while writing it)."""
    try:
        return Record(_stamp_decoder.decode(line), decode(line), line)
    except (msgspec.DecodeError, EventError, RecursionError):
        return None


def records(paths: RunPaths) -> Iterator[Record]:
    """All whole records of a run so far."""
    try:
        with open_regular(paths.events) as file:
            for line in _lines(file):
                if line.endswith(b"\n") and (record := parse(line[:-1])):
                    yield record
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"the events of run {paths.run_id} cannot be read: {error.strerror}") from None


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Of a file that need not have any: what is longer than any line of ours comes in pieces."""
    return iter(lambda: file.readline(_MAX_LINE), b"")


def find_state(start: Path, trust: Trust) -> StatePaths:
    """The nearest `.ralph/runs`, from a directory upward. A link out of the repository needs approval."""
    for folder in (start, *start.parents):
        state = StatePaths(folder)
        if state.runs.is_dir():
            required(trust, of_journal(folder, (state.root, state.runs), repository(folder)))
            return state
    raise UsageError(f"there are no runs here ({start} has no .ralph/runs, nor has a folder above it)")


def list_runs(state: StatePaths) -> list[RunPaths]:
    """Oldest first."""
    return [RunPaths(p) for p in sorted(state.runs.iterdir()) if p.is_dir() and not p.is_symlink()]


def newest(state: StatePaths, runs: list[RunPaths]) -> RunPaths:
    """The run that began last. Its name says when, but the clock may have been set back since the one before it."""
    try:
        pointed = state.latest.readlink().name
    except OSError:
        pointed = ""
    return next((run for run in runs if run.run_id == pointed), runs[-1])


def find_run(state: StatePaths, name: str | None) -> RunPaths:
    """A run by its id or the beginning of it; the newest if none is named."""
    runs = list_runs(state)
    if not runs:
        raise UsageError(f"there are no runs in {state.runs}")
    if name is None or name == "latest":
        return newest(state, runs)
    matching = [r for r in runs if r.run_id == name] or [r for r in runs if r.run_id.startswith(name)]
    match matching:
        case [run]:
            return run
        case []:
            raise UsageError(f"there is no run '{name}'{nearest(name, [r.run_id for r in runs])}; see `ralph runs`")
        case _:
            raise UsageError(f"'{name}' may be {len(matching)} runs: {', '.join(r.run_id for r in matching)}")


def run_facts(paths: RunPaths) -> dict[str, Any]:
    """run.json, or nothing if the run died before it was written."""
    try:
        facts = msgspec.json.decode(read(paths.run_json, _MAX_FACTS, follow=False))
    except (OSError, msgspec.DecodeError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def run_end(paths: RunPaths) -> dict[str, Any] | None:
    """The summary of a run, unless it died or was gone on with."""
    found = last_meta(paths, Kind.RUN_END, Kind.RUN_RESUME)
    return found if found and found.get("kind") == Kind.RUN_END else None


def last_meta(paths: RunPaths, *kinds: Kind, tail: int = 1 << 16) -> dict[str, Any] | None:
    """The newest meta event of these kinds among the last bytes of a run: at least those of its last whole line."""
    try:
        with open_regular(paths.events) as file:
            size = file.seek(0, 2)
            while True:
                file.seek(max(0, size - tail))
                lines = file.read().split(b"\n")
                if len(lines) > 2 or tail >= min(size, _MAX_LINE):
                    break
                tail *= 8
    except OSError:
        return None
    for line in reversed(lines):
        record = parse(line) if line.startswith(b'{"seq":') else None
        if record and isinstance(record.event, Meta) and record.event.meta.get("kind") in kinds:
            return record.event.meta
    return None


class Follower:
    """Reads a growing run; call `read` again for what has come since."""

    def __init__(self, paths: RunPaths) -> None:
        self._paths = paths
        self._offset = 0
        self.ended = False

    def read(self) -> Iterator[Record]:
        try:
            with open_regular(self._paths.events) as file:
                file.seek(self._offset)
                for line in _lines(file):
                    if not line.endswith(b"\n"):
                        return  # still being written
                    self._offset += len(line)
                    record = parse(line[:-1])
                    if record is not None:
                        if isinstance(record.event, Meta):
                            self._mind(record.event)
                        yield record
        except FileNotFoundError:
            return

    def _mind(self, event: Meta) -> None:
        match event.meta.get("kind"):
            case Kind.RUN_END:
                self.ended = True
            case Kind.RUN_RESUME:
                self.ended = False
