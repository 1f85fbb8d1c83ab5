"""What a reader keeps does not grow with what it reads."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fuzz.checks import require
from fuzz.renewed import New, renewed
from ralph.agents.codex import held as codex_held
from ralph.agents.kimi import text as kimi_text
from ralph.judging.observe import Observation
from ralph.judging.signals import Markers
from ralph.transcripts import deltas, json_lines, recent, repeats
from ralph.transcripts.stream_json import usage as claude_usage
from ralph.ui import render

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ralph.transcripts.base import TranscriptAdapter

#: How much a reader may hold while its limits are lowered to a few kilobytes.
_ROOM = 256 << 10
_FEW, _MANY = 2000, 2500
_LOWERED = 4 << 10
#: Rounds with ever new ids: each thing that is kept of one counts.
_ROUNDS = 250
_FEW_ENTRIES = 16
#: Limits that would take megabytes of input to reach, and those of how many are remembered.
_LIMITS = (
    (deltas, "MAX_HELD", _LOWERED),
    (deltas, "MOST_FRAGMENTS", 16),
    (json_lines, "_MAX_DOCUMENT", _LOWERED),
    (kimi_text, "_MAX_RECORD", _LOWERED),
    (repeats, "_KEPT", _LOWERED),
    (recent, "KEPT", _FEW_ENTRIES),
    (claude_usage, "_MOST_MESSAGES", _FEW_ENTRIES),
    (codex_held, "MOST_HELD", _LOWERED),
    (render, "_OPEN_TOOLS", _FEW_ENTRIES),
)
Lines = list[tuple[bool, str]]


@contextmanager
def lowered() -> Iterator[None]:
    before = [(module, name, getattr(module, name)) for module, name, _ in _LIMITS]
    for module, name, value in _LIMITS:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def check(create: Callable[[], TranscriptAdapter], lines: Lines) -> None:
    """The same lines again and again."""
    with lowered():
        adapter = create()
        sizes = []
        for times in (_FEW, _MANY):
            for _ in range(times):
                for on_stderr, line in lines:
                    adapter.feed_stderr(line) if on_stderr else adapter.feed(line)
            sizes.append(size(adapter))
    _compare("the adapter", sizes, f"{_MANY} more times", lines)


def check_new_ids(create: Callable[[], TranscriptAdapter], before: Lines, lines: Lines, what: New) -> None:
    """The same lines with other ids each time, after lines that make clear what they belong to."""
    with lowered():
        adapter, seen, shown = create(), Observation(Markers()), render.Renderer()
        for on_stderr, line in before:
            adapter.feed_stderr(line) if on_stderr else adapter.feed(line)
        sizes: list[tuple[int, ...]] = []
        for first, end in ((0, _ROUNDS), (_ROUNDS, 4 * _ROUNDS)):
            for number in range(first, end):
                for on_stderr, line in lines:
                    line = renewed(line, number, what)
                    events = adapter.feed_stderr(line) if on_stderr else adapter.feed(line)
                    seen.feed(events)
                    for event in events:
                        shown.lines(event)
            sizes.append((size(adapter), size(seen), size(shown)))
    for who, few, many in zip(("the adapter", "the observation", "the renderer"), *sizes, strict=True):
        _compare(who, [few, many], f"{3 * _ROUNDS} more ids", lines)


def _compare(who: str, sizes: list[int], after: str, lines: Lines) -> None:
    growth = sizes[1] - sizes[0]
    longest = max(len(line) for _, line in lines)
    if growth > _FEW_ENTRIES * longest + 10 * _LOWERED:  # a character that is held may take ten bytes
        require(False, f"{who} keeps {growth} bytes more after {after}", lines)


def size(value: Any) -> int:
    """In bytes, with all that it refers to, but for code."""
    seen: set[int] = set()
    waiting = [value]
    total = 0
    while waiting:
        one = waiting.pop()
        if id(one) in seen or callable(one) or isinstance(one, type):
            continue
        seen.add(id(one))
        total += sys.getsizeof(one)
        if isinstance(one, dict):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, str | bytes):
            continue
        elif hasattr(one, "__iter__") and hasattr(one, "__len__"):
            waiting += list(one)
        else:
            waiting += list(getattr(one, "__dict__", {}).values())
            waiting += [getattr(one, n, None) for n in getattr(type(one), "__struct_fields__", ())]
    return total
