"""How often an agent may be called in an hour, counted over a sliding hour."""

from __future__ import annotations

import msgspec

from ralph.loop.waits import Wait

HOUR = 3600.0


class Calls(msgspec.Struct, frozen=True, omit_defaults=True):
    """`times` are the calls of the last hour, seconds since the epoch; a `limit` of 0 disables it."""

    limit: int = 0
    times: tuple[float, ...] = ()

    def called(self, now: float) -> Calls:
        if not self.limit:
            return self
        return msgspec.structs.replace(self, times=(*self._recent(now), now))

    def wait(self, now: float) -> Wait | None:
        """None if there is a free call."""
        recent = self._recent(now)
        if not self.limit or len(recent) < self.limit:
            return None
        until = recent[-self.limit] + HOUR
        calls = "1 call" if self.limit == 1 else f"{self.limit} calls"
        return Wait(until - now, until, f"reached the limit of {calls} an hour (max_calls_per_hour)")

    def _recent(self, now: float) -> tuple[float, ...]:
        # A call in the future means that the clock was set back: it says nothing about this hour.
        return tuple(t for t in self.times if now - HOUR < t <= now)
