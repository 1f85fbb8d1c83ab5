"""Whether the keeper still answers. Times are those of the monotonic clock; nothing here reads it."""

from __future__ import annotations

#: A keeper that has not answered for this long may have been stopped: it is continued.
NUDGE = 0.4
#: After this long it is killed. It needs microseconds to answer, so even a machine under load is quicker.
UNRESPONSIVE = 15.0
#: How long the keeper may take to end everything, in addition to the grace period: 5 s of killing, and some time.
ENDING = 10.0


class Heartbeat:
    """At most one question is open at a time."""

    def __init__(self) -> None:
        self._asked_at: float | None = None
        self._gone_by: float | None = None

    def ask(self, now: float) -> bool:
        """Whether to send a question now."""
        if self._asked_at is not None:
            return False
        self._asked_at = now
        return True

    def answered(self) -> None:
        self._asked_at = None

    def ending(self, now: float, grace: float) -> None:
        """The keeper was told to end everything, with this grace period."""
        self._gone_by = min(now + grace + ENDING, self._gone_by or now + grace + ENDING)

    def is_silent(self, now: float) -> bool:
        """Whether it may have been stopped."""
        return self._asked_at is not None and now >= self._asked_at + NUDGE

    def is_lost(self, now: float) -> bool:
        """Whether to give it up."""
        if self._asked_at is not None and now >= self._asked_at + UNRESPONSIVE:
            return True
        return self._gone_by is not None and now >= self._gone_by
