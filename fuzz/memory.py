"""What a reader keeps does not grow with what it reads."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fuzz.checks import require
from ralph.transcripts import _deltas, _json, _kimi_text, _said

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ralph.transcripts.base import TranscriptAdapter

#: How much a reader may hold while its limits are lowered to a few kilobytes.
_ROOM = 256 << 10
_FEW, _MANY = 2000, 2500
_LOWERED = 4 << 10
#: Limits that would take megabytes of input to reach.
_LIMITS = ((_deltas, "MAX_HELD"), (_json, "_MAX_DOCUMENT"), (_kimi_text, "_MAX_RECORD"), (_said, "_KEPT"))


@contextmanager
def lowered() -> Iterator[None]:
    before = [(module, name, getattr(module, name)) for module, name in _LIMITS]
    for module, name in _LIMITS:
        setattr(module, name, _LOWERED)
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def check(create: Callable[[], TranscriptAdapter], lines: list[tuple[bool, str]]) -> None:
    """The same lines again and again."""
    with lowered():
        adapter = create()
        sizes = []
        for times in (_FEW, _MANY):
            for _ in range(times):
                for on_stderr, line in lines:
                    adapter.feed_stderr(line) if on_stderr else adapter.feed(line)
            sizes.append(size(adapter))
    growth = sizes[1] - sizes[0]
    longest = max(len(line) for _, line in lines)
    if growth > 16 * longest + _ROOM // 16:
        require(False, f"it keeps {growth} bytes more after {_MANY} more times", lines)


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
