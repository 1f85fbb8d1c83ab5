"""(f) Transcript adapters against bare msgspec, which decodes the same lines and builds the same events."""

from __future__ import annotations

import gc
import sys
import time
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from bench.measure import MB
from bench.sessions import SESSIONS, Session
from bench.table import Row
from ralph.agents import adapters as registry
from ralph.transcripts.events import Text, ToolCall, ToolOutput, ToolStart, TranscriptEvent
from ralph.transcripts.safe import SafeAdapter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_RATIO = 0.6
_SPEED = 30.0
#: Lines that are timed at once: short enough that some round has the machine for itself.
_CHUNK = 500

#: How to build an event: its class, the class of what it holds, and the arguments of the innermost.
_Recipe: TypeAlias = "tuple[Any, Any, tuple[Any, ...], tuple[Any, ...]]"


def measure(*, quick: bool, only: str = "") -> list[Row]:
    """All sessions, or those whose names hold `only`, as in `codex, text`."""
    size, rounds = (1 * MB, 5) if quick else (6 * MB, 9)
    rows = []
    for session in SESSIONS:
        name = f"{session.adapter}, {session.form}"
        if only in name:
            sys.stderr.write(f"  {name}\n")
            rows.append(_row(session, session.lines(size), rounds))
    return rows


def _row(session: Session, lines: list[str], rounds: int) -> Row:
    what = f"{session.adapter}, {session.form}"
    megabytes = sum(len(line.encode()) + 1 for line in lines) / MB
    recipes = _recipes(session, lines) if session.json else []
    gc.collect()
    gc.set_threshold(50_000)  # as in a run
    gc.freeze()  # else the search for cycles would look through the material again and again
    starts = range(0, len(lines), _CHUNK)
    ours, bare = [float("inf")] * len(starts), [float("inf")] * len(starts)
    for _ in range(rounds):
        feed = _feeder(session)
        for number, start in enumerate(starts):
            part = lines[start : start + _CHUNK]
            ours[number] = min(ours[number], _feed(feed, part))
            if session.json:
                bare[number] = min(bare[number], _bare(part, recipes[start : start + _CHUNK]))
    gc.unfreeze()
    # The quickest of each chunk: whatever else the machine does makes it slower, never quicker.
    speed = megabytes / sum(ours)
    note = f"{len(lines):,} lines of {megabytes * MB / len(lines):.0f} bytes"
    if not session.json:
        return Row("f", what, f"{speed:.0f} MB/s", f"≥ {_SPEED:.0f} MB/s", speed >= _SPEED, note)
    share = sum(bare) / sum(ours)
    return Row(
        "f",
        what,
        f"{share:.0%}, {speed:.0f} MB/s",
        f"≥ {_RATIO:.0%}, ≥ {_SPEED:.0f} MB/s",
        share >= _RATIO and speed >= _SPEED,
        f"{note}; bare msgspec {megabytes / sum(bare):.0f} MB/s",
    )


def _feeder(session: Session) -> Callable[[list[str]], list[TranscriptEvent]]:
    """As a run does it: many lines at once, and guarded."""
    adapter = SafeAdapter(registry.create(session.adapter))
    return adapter.feed_stderr_lines if session.stderr else adapter.feed_lines


def _feed(feed: Callable[[list[str]], list[TranscriptEvent]], lines: list[str]) -> float:
    before = time.perf_counter()
    feed(lines)
    return time.perf_counter() - before


def _bare(lines: list[str], recipes: list[list[_Recipe]]) -> float:
    """As little as any adapter could do: decode the line, put its events into a list, and that to the others'."""
    decode = msgspec.json.decode
    before = time.perf_counter()
    all_events: list[Any] = []
    for line, parts in zip(lines, recipes, strict=True):
        decode(line)
        events = []
        for outer, inner, arguments, rest in parts:
            events.append(outer(inner(*arguments), *rest) if inner else outer(*arguments))
        all_events += events
    return time.perf_counter() - before


def _recipes(session: Session, lines: list[str]) -> list[list[_Recipe]]:
    feed = _feeder(session)
    return [[recipe for event in feed([line]) for recipe in (*_made(event, line), _recipe(event))] for line in lines]


def _made(event: TranscriptEvent, line: str) -> list[_Recipe]:
    """What an event needs that decoding its line does not give: JSON in a string, or an object written as text."""
    wanted: Any
    match event:
        case ToolStart(ToolCall(input=dict() as wanted)):
            pass
        case ToolOutput(text=wanted):
            pass
        case _:
            return []
    values = list(_values(msgspec.json.decode(line)))
    if any(value == wanted for value in values):
        return []
    for value in values:
        if isinstance(value, str) and value.startswith("{") and _holds(value, wanted):
            return [(msgspec.json.decode, None, (value,), ())]
        if isinstance(value, dict) and msgspec.json.encode(value).decode() == wanted:
            return [(msgspec.json.encode, None, (value,), ())]
    return []


def _values(value: Any) -> Iterator[Any]:
    yield value
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _values(inner)


def _holds(text: str, wanted: Any) -> bool:
    try:
        return any(value == wanted for value in _values(msgspec.json.decode(text)))
    except msgspec.DecodeError:
        return False


def _recipe(event: TranscriptEvent) -> _Recipe:
    if isinstance(event, Text):
        return Text, None, (event.tag, event.text), ()
    inner = next(getattr(event, name) for name in ("tool", "usage", "meta") if hasattr(event, name))
    rest = (event.text,) if isinstance(event, ToolOutput) else ()
    if isinstance(inner, msgspec.Struct):
        return type(event), type(inner), tuple(getattr(inner, f) for f in inner.__struct_fields__), rest
    return type(event), dict, (inner,), rest
