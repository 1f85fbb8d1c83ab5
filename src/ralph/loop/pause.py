"""Waits in short steps, so that the screen shows a countdown and a signal ends the wait at once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.loop.waits import Wait
    from ralph.runners.stop import StopKind

_STEP = 1.0


class Waiter(Protocol):
    """Sleeps, but wakes up early for a stop."""

    @property
    def kind(self) -> StopKind | None: ...
    def wait(self, seconds: float, /) -> bool: ...


def hold(wait: Wait, stop: Waiter, show: Callable[[float], None]) -> None:
    """Returns when the time has come or a stop was requested. `show` gets the seconds that are left.

    It uses both clocks: one stands still while a computer sleeps, the other may be set back.
    """
    end = time.monotonic() + wait.seconds
    while stop.kind is None:
        left = min(end - time.monotonic(), wait.until - time.time())
        if left <= 0:
            return
        show(left)
        stop.wait(min(left, _STEP))
