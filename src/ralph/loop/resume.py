"""What a journal tells of a run that is to be gone on with."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from ralph.agents import adapters as registry
from ralph.errors import UsageError
from ralph.journal.reader import records
from ralph.judging import costs
from ralph.judging.observe import Observation
from ralph.loop.progress import Snapshot
from ralph.loop.sessions import told_again
from ralph.loop.state import RunState, restored
from ralph.transcripts.events import Meta, TranscriptEvent, UsageEvent
from ralph.transcripts.framing import LineFramer
from ralph.transcripts.meta import Kind
from ralph.transcripts.safe import SafeAdapter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ralph.journal.layout import RunPaths
    from ralph.judging.signals import Markers
    from ralph.launching.launch import Launch

_CHUNK = 1 << 20


class Past(msgspec.Struct, frozen=True):
    """A run up to now."""

    state: RunState
    #: the tree before the run; None if that was not written down
    first: Snapshot | None
    #: how each check was before the run
    baseline: dict[str, bool]
    #: the iteration that began and has no end, and whose it was
    cut: int | None = None
    cut_agent: str = ""
    #: when it began, seconds since the epoch
    cut_at: float = 0.0
    #: the usage that was recorded of it
    cut_usage: tuple[UsageEvent, ...] = ()
    #: how the run ended; None: it died
    end: str | None = None
    #: what was being written when it died
    torn: str = ""


def read(paths: RunPaths) -> Past:
    """Everything that the journal knows. UsageError if it is not one of a run that can be gone on with."""
    state = RunState()
    baseline: dict[str, bool] = {}
    cut: int | None = None
    agent = ""
    usage: list[UsageEvent] = []
    end: str | None = None
    begun = marked = last = cut_at = 0.0
    for record in records(paths):
        last = record.stamp.time
        event = record.event
        if isinstance(event, UsageEvent):
            usage.append(event)
        if not isinstance(event, Meta):
            continue
        fields = event.meta
        match fields.get("kind"):
            case Kind.RUN_START | Kind.RUN_RESUME:
                begun, marked, end = last, 0.0, None
            case Kind.VERIFY if fields.get("baseline"):
                baseline[str(fields.get("command"))] = fields.get("ok") is True
            case Kind.ITERATION_START:
                cut, cut_at, agent, usage = _number(paths, fields.get("n")), last, str(fields.get("agent")), []
            case Kind.ITERATION_END:
                cut, marked = None, last
                try:
                    state = restored(fields)
                except (KeyError, msgspec.ValidationError):
                    raise UsageError(
                        f"run {paths.run_id} was written by a version of ralph that did not keep what is needed to "
                        "go on with it; start a new run"
                    ) from None
            case Kind.RUN_END:
                end = str(fields.get("end"))
    if not begun:
        raise UsageError(f"run {paths.run_id} died before it began; start a new run")
    # The time since the last number that was written down is known from the clock of the records alone.
    state.elapsed += max(0.0, max(last, _last_output(paths, cut)) - (marked or begun))
    return Past(state, _first(paths), baseline, cut, agent, cut_at, tuple(usage), end)


def _number(paths: RunPaths, value: object) -> int:
    if isinstance(value, int) and 0 < value < 10**9:
        return value
    raise UsageError(f"the events of run {paths.run_id} are not as ralph writes them; start a new run")


def _last_output(paths: RunPaths, iteration: int | None) -> float:
    """When the agent of an iteration was last heard of."""
    latest = 0.0
    for name in ("stdout.raw", "stderr.raw") if iteration else ():
        with suppress(OSError):
            latest = max(latest, (paths.iteration(iteration or 0) / name).stat().st_mtime)
    return latest


def lost(past: Past, paths: RunPaths, turns: tuple[Launch, ...], markers: Markers) -> Observation:
    """What the iteration that was cut short had come to: its usage is spent, and the agent's session may be of use.

    The raw bytes know more than the events, as they are written first.
    """
    assert past.cut is not None
    launch = next((one for one in turns if one.agent == past.cut_agent), None)
    session = past.state.sessions.get(past.cut_agent)
    told = told_again(launch, session.told) if launch and session else None
    seen = Observation(markers, costs.pricing(launch.prices, launch.settings.model) if launch else None, told)
    if launch is None or launch.launcher is not None:  # whose output other conventions' code has a hand in
        seen.feed(list(past.cut_usage))
        return seen
    folder = paths.iteration(past.cut)
    prompt = None
    with suppress(OSError):
        prompt = (folder / "prompt.md").read_text("utf-8", "surrogateescape")
    adapter = SafeAdapter(registry.create(launch.transcript, prompt=prompt))
    for events in _events(folder / "stderr.raw", adapter.feed_stderr_lines):
        seen.feed(events)
    for events in _events(folder / "stdout.raw", adapter.feed_lines):
        seen.feed(events)
    seen.feed(adapter.flush())
    return seen


def _events(raw: Path, feed: Callable[[list[str]], list[TranscriptEvent]]) -> Iterator[list[TranscriptEvent]]:
    framer = LineFramer()
    try:
        with raw.open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield feed(framer.feed(chunk))
    except FileNotFoundError:  # it died before the agent was started
        return
    yield feed(framer.flush())


def _first(paths: RunPaths) -> Snapshot | None:
    import json

    try:
        return msgspec.convert(json.loads(paths.baseline.read_bytes()), Snapshot)
    except (OSError, ValueError, msgspec.ValidationError):
        return None
