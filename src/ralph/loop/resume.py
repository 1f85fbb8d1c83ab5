"""Reads a journal to resume its run."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from ralph.agents import adapters as registry
from ralph.errors import UsageError
from ralph.journal.reader import records
from ralph.judging import costs
from ralph.judging.observe import Observation
from ralph.judging.output import OutputReader
from ralph.launching.prompt import MAX_PROMPT
from ralph.loop.sessions import repeated_usage
from ralph.loop.state import RunState, restored
from ralph.system.files import open_regular, read_text
from ralph.system.files import read as read_file
from ralph.transcripts.events import Meta, TranscriptEvent, UsageEvent
from ralph.transcripts.meta import Kind
from ralph.transcripts.safe import SafeAdapter
from ralph.tree.snapshot import STORED_LIMIT, Snapshot, decoded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from ralph.journal.layout import RunPaths
    from ralph.judging.signals import Markers
    from ralph.launching.launch import Launch

_CHUNK = 1 << 20
#: The snapshot of a tree with a million files.
_MAX_BASELINE = 256 << 20


class Unfinished(msgspec.Struct, frozen=True):
    """An iteration that has a start in the journal but no end."""

    number: int
    agent: str
    #: when it started, seconds since the epoch
    started: float
    #: the usage in its events
    usage: tuple[UsageEvent, ...] = ()


class Past(msgspec.Struct, frozen=True):
    """A run up to now."""

    state: RunState
    #: the tree before the run; None if it is unknown
    first: Snapshot | None
    #: which checks passed before the run
    baseline: dict[str, bool]
    unfinished: Unfinished | None = None
    #: how the run ended; None if it died
    end: str | None = None
    #: the line that was being written when the run died
    torn: str = ""


def read(paths: RunPaths) -> Past:
    """Everything that the journal knows. UsageError if the run cannot be resumed."""
    run = _Reading(paths)
    for record in records(paths):
        run.take(record.event, record.stamp.time)
    return run.past()


class _Reading:
    """What the events up to now say."""

    def __init__(self, paths: RunPaths) -> None:
        self._paths = paths
        self._state = RunState()
        self._baseline: dict[str, bool] = {}
        self._unfinished: Unfinished | None = None
        self._usage: list[UsageEvent] = []
        self._end: str | None = None
        #: when the run started or was resumed, when its elapsed time was last written, and the latest event
        self._begun = self._measured = self._latest = 0.0

    def take(self, event: TranscriptEvent, time: float) -> None:
        self._latest = time
        if isinstance(event, UsageEvent):
            self._usage.append(event)
        elif isinstance(event, Meta):
            self._take_meta(event.meta, time)

    def _take_meta(self, fields: dict[str, Any], time: float) -> None:
        match fields.get("kind"):
            case Kind.RUN_START | Kind.RUN_RESUME:
                self._begun, self._measured, self._end = time, 0.0, None
            case Kind.VERIFY if fields.get("baseline"):
                self._baseline[str(fields.get("command"))] = fields.get("ok") is True
            case Kind.ITERATION_START:
                self._unfinished = Unfinished(self._number(fields.get("n")), str(fields.get("agent")), time)
                self._usage = []
            case Kind.ITERATION_END:
                self._unfinished, self._measured = None, time
                self._state = self._restored(fields)
            case Kind.RUN_END:
                self._end = str(fields.get("end"))

    def _restored(self, fields: dict[str, Any]) -> RunState:
        try:
            return restored(fields)
        except (KeyError, msgspec.ValidationError):
            raise UsageError(
                f"run {self._paths.run_id} was written by a version of ralph that did not save enough to resume it; "
                "start a new run"
            ) from None

    def _number(self, value: object) -> int:
        if isinstance(value, int) and 0 < value < 10**9:
            return value
        raise UsageError(f"the events of run {self._paths.run_id} are damaged; start a new run")

    def past(self) -> Past:
        if not self._begun:
            raise UsageError(f"run {self._paths.run_id} died before it started; start a new run")
        unfinished = self._unfinished
        if unfinished is not None:
            unfinished = msgspec.structs.replace(unfinished, usage=tuple(self._usage))
        # Only the times of the records tell how long the run went on after the last time it wrote `elapsed`.
        alive = max(self._latest, _last_output(self._paths, unfinished))
        elapsed = self._state.elapsed + max(0.0, alive - (self._measured or self._begun))
        state = msgspec.structs.replace(self._state, elapsed=elapsed)
        return Past(state, _first(self._paths), self._baseline, unfinished, self._end)


def _last_output(paths: RunPaths, unfinished: Unfinished | None) -> float:
    """When the agent last printed anything."""
    latest = 0.0
    if unfinished is None:
        return latest
    for name in ("stdout.raw", "stderr.raw"):
        with suppress(OSError):
            latest = max(latest, (paths.iteration(unfinished.number) / name).stat().st_mtime)
    return latest


def observe(
    unfinished: Unfinished, state: RunState, paths: RunPaths, launch: Launch | None, markers: Markers
) -> Observation:
    """What an unfinished iteration did: its usage is spent, and its session may be of use.

    It reads the raw bytes, which are written before the events. `launch` is None if the agent is no longer part of
    the run.
    """
    session = state.sessions.get(unfinished.agent)
    before = repeated_usage(launch, session.reported) if launch and session else None
    seen = Observation(markers, costs.pricing(launch.prices, launch.settings.model) if launch else None, before)
    if launch is None or launch.launcher is not None:  # a launcher may have its own way to read the output
        seen.feed(list(unfinished.usage))
        return seen
    folder = paths.iteration(unfinished.number)
    prompt = None
    with suppress(OSError):
        prompt = read_text(folder / "prompt.md", "surrogateescape", MAX_PROMPT)
    adapter = SafeAdapter(registry.create(launch.transcript, prompt=prompt))
    reader = OutputReader(adapter, seen, pty=launch.settings.pty or launch.invocation.pty)
    for chunk in _chunks(folder / "stderr.raw"):
        reader.stderr(chunk)
    reader.end_stderr()
    for chunk in _chunks(folder / "stdout.raw"):
        reader.stdout(chunk)
    reader.end()
    return seen


def _chunks(raw: Path) -> Iterator[bytes]:
    with suppress(OSError), open_regular(raw) as file:  # ralph may die before the agent starts
        while chunk := file.read(_CHUNK):
            yield chunk


def _first(paths: RunPaths) -> Snapshot | None:
    try:
        return decoded(read_file(paths.baseline, STORED_LIMIT, follow=False))
    except OSError:
        return None
