"""When a running command is overdue. Times are those of the monotonic clock; nothing here reads it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ralph.runners.command import EndKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.runners.command import Deadlines

#: After the command has exited, how long a stray may hold a silent pipe open.
_QUIET = 0.5
_DRAIN_LIMIT = 5.0


class Timers:
    """What a command's deadlines are measured from: its start, its last output, its final message, its exit."""

    def __init__(self, deadlines: Deadlines, now: float) -> None:
        self._deadlines = deadlines
        self.started = now
        self._last_output = now
        self._has_output = False
        self._finished_at: float | None = None
        self._exited_at: float | None = None

    def output(self, now: float) -> None:
        self._last_output = now
        self._has_output = True

    def exited(self, now: float) -> None:
        self._exited_at = now

    @property
    def has_exited(self) -> bool:
        return self._exited_at is not None

    def drained(self, now: float) -> bool:
        """Whether the output of a command that has exited has been read for long enough."""
        return now >= self._drained_at()

    def next(self, other: float | None) -> float:
        """The next moment at which something may be overdue; `other` is a deadline known elsewhere."""
        if self._exited_at is not None:
            return self._drained_at()
        limits = self._deadlines
        moments = [math.inf if other is None else other]
        if limits.wall is not None:
            moments.append(self.started + limits.wall)
        if limits.idle is not None:
            moments.append(self._last_output + limits.idle)
        if limits.first_output is not None and not self._has_output:
            moments.append(self.started + limits.first_output)
        if limits.linger is not None and self._finished_at is not None:
            moments.append(max(self._finished_at, self._last_output) + limits.linger)
        return min(moments)

    def overdue(self, now: float, finished: Callable[[], bool]) -> tuple[EndKind, str] | None:
        """The deadline that has passed, if any. `finished` tells whether the command has sent its final message."""
        limits = self._deadlines
        if limits.linger is not None and finished():
            self._finished_at = self._finished_at or now
            if now >= max(self._finished_at, self._last_output) + limits.linger:
                return EndKind.LINGERED, f"still running {limits.linger:g} s after its final message"
        if limits.wall is not None and now >= self.started + limits.wall:
            return EndKind.WALL, f"ran for more than {limits.wall:g} s"
        if limits.idle is not None and now >= self._last_output + limits.idle:
            return EndKind.IDLE, f"no output for {limits.idle:g} s"
        if limits.first_output is not None and not self._has_output and now >= self.started + limits.first_output:
            return EndKind.IDLE, f"no output in its first {limits.first_output:g} s"
        return None

    def _drained_at(self) -> float:
        assert self._exited_at is not None
        return min(max(self._exited_at, self._last_output) + _QUIET, self._exited_at + _DRAIN_LIMIT)
