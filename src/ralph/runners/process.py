"""Running commands one after another, so that none of them leaves a process behind. `Supervisor` is the way in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from ralph.runners.command import Command, Deadlines, Ended, EndKind, Sink, describe_status, signal_name
from ralph.runners.execution import Execution
from ralph.runners.owned import OwnedKeeper
from ralph.runners.pipes import PIPE_SIZE
from ralph.system import cgroup, children

if TYPE_CHECKING:
    from types import TracebackType

    from ralph.runners.stop import StopSwitch

__all__ = [
    "PIPE_SIZE",
    "Command",
    "Deadlines",
    "EndKind",
    "Ended",
    "Sink",
    "Supervisor",
    "describe_status",
    "signal_name",
]


class Supervisor:
    """Runs the commands of a run. The keeper it starts holds `locks` until every process of theirs is gone.

    `environ` is the keeper's own environment; each command brings its own.
    """

    def __init__(
        self,
        stop: StopSwitch,
        *,
        tick: float = 0.2,
        locks: tuple[int, ...] = (),
        environ: dict[str, str] | None = None,
    ) -> None:
        self._stop = stop
        self._tick = tick
        self._locks = locks
        self._environ = environ
        self._keeper: OwnedKeeper | None = None
        self._group: str | None = None
        self._before: frozenset[int] = frozenset()

    def __enter__(self) -> Self:
        self._before = children.begin()  # if the keeper is killed, its orphans become ours
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.close()
        if keeper is not None or self._group is not None:
            self._end_orphans()

    def run(self, command: Command, sink: Sink, deadlines: Deadlines) -> Ended:
        """Runs one command to its end. `sink` gets its output as it arrives."""
        return Execution(
            self._ensure_keeper(), command, sink, deadlines, self._stop, self._tick, keeper_lost=self._keeper_lost
        ).run()

    def _keeper_lost(self) -> tuple[str, ...]:
        """Ends a keeper that was killed or does not answer, and what it left, so that the next one starts clean.

        Returns the names of the processes that cannot be ended.
        """
        if self._keeper is not None:
            self._keeper.kill()
            self._keeper = None
        return self._end_orphans()

    def _end_orphans(self) -> tuple[str, ...]:
        if self._group is not None:
            cgroup.kill(self._group)
        left = children.end_orphans(self._before)
        if self._group is not None:
            cgroup.remove(self._group)
            self._group = None
        return left

    def _ensure_keeper(self) -> OwnedKeeper:
        if self._keeper is not None and self._keeper.has_ended():
            self._keeper_lost()  # between two commands
        if self._keeper is None:
            self._group = self._group or cgroup.create()
            self._keeper = OwnedKeeper(self._locks, self._environ, self._group)
        return self._keeper
