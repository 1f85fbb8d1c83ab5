"""Waiting itself: in short steps, so that a countdown can be shown and a signal ends it at once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.loop.waits import Wait
    from ralph.runners.stop import StopKind

_STEP = 1.0


class Waiter(Protocol):
    """Who sleeps for us."""

    @property
    def kind(self) -> StopKind | None: ...
    def wait(self, seconds: float, /) -> bool: ...


def hold(wait: Wait, stop: Waiter, show: Callable[[float], None]) -> None:
    """Returns when the time has come or a stop was asked for. `show` is given the seconds that are left.

    Both clocks are looked at: one stands still while a computer sleeps, the other may be set back.
    """
    end = time.monotonic() + wait.seconds
    while stop.kind is None:
        left = min(end - time.monotonic(), wait.until - time.time())
        if left <= 0:
            return
        show(left)
        stop.wait(min(left, _STEP))
