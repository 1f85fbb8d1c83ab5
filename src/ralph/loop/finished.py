"""One iteration after it ended: what came of it, and what ralph found when it looked at the work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ralph.loop.decide import PAUSED
from ralph.loop.sessions import Session
from ralph.loop.waits import is_limit
from ralph.runners.process import Ended, EndKind
from ralph.runners.stop import StopKind

if TYPE_CHECKING:
    from ralph.judging.judge import Verdict
    from ralph.judging.observe import Observation
    from ralph.transcripts.base import Capabilities
    from ralph.transcripts.events import Usage
    from ralph.tree.snapshot import Changes

#: A shell reports the death of a program by a signal as this plus the signal's number.
_SIGNALS = 128
_BY_USER = frozenset({PAUSED, *StopKind})


class Finished(msgspec.Struct, frozen=True):
    """One iteration, as far as the next decision needs it."""

    number: int
    agent: str
    #: the position of the agent in the rotation
    turn: int
    #: when the agent was started, seconds since the epoch
    started: float
    verdict: Verdict
    ended: Ended
    seen: Observation
    changes: Changes
    capabilities: Capabilities
    #: the agent's session, to be resumed if it has an id
    session: Session = Session()

    @property
    def used(self) -> Usage:
        """What it used. An agent that was killed may have used more."""
        status = self.ended.status or 0
        died = self.ended.kind is EndKind.EXITED and (status < 0 or status > _SIGNALS)
        return self.seen.used(cut_short=died or self.ended.kind not in (EndKind.EXITED, EndKind.NOT_STARTED))

    @property
    def limited(self) -> bool:
        """The provider did not let the agent work."""
        return is_limit(self.verdict, reported=self.seen.reported_error)

    @property
    def stopped_by_user(self) -> bool:
        return self.ended.kind is EndKind.STOPPED and self.ended.reason in _BY_USER

    @property
    def counts(self) -> bool:
        """Whether it counts against the limits, and as a failure if it failed."""
        return not self.limited and not self.stopped_by_user


class Review(msgspec.Struct, frozen=True):
    """What ralph found when it looked at an iteration's work."""

    #: why a claim to be done is not accepted
    rejected: str | None = None
    #: what the agent changed that it must not change, in words
    trespass: str | None = None
    #: the files outside the allowed paths that it changed
    trespassed: tuple[str, ...] = ()
    #: what the next prompt must say
    notes: tuple[str, ...] = ()
    #: what ralph saw when it accepted a claim to be done, in words
    seen: str = ""
