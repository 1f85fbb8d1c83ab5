"""Whether the user asked to stop, for code that takes long and knows nothing of a run."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def _nobody() -> int:
    return 0


_count: Callable[[], int] = _nobody


def requests() -> int:
    """How often the user asked to stop. Outside a run, where Ctrl-C is an exception, never."""
    return _count()


@contextmanager
def counted_by(count: Callable[[], int]) -> Iterator[None]:
    """`requests` asks `count` for the time of a `with` block."""
    global _count
    before, _count = _count, count
    try:
        yield
    finally:
        _count = before
