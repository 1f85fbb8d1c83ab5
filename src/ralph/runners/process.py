"""Running commands one after another, so that none of them leaves a process behind. `Supervisor` is the way in."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Self

from ralph.errors import RunError
from ralph.runners import keeper as keeper_module
from ralph.runners.channel import Channel
from ralph.runners.command import Command, Deadlines, Ended, EndKind, Sink, describe_status, signal_name
from ralph.runners.execution import Execution
from ralph.runners.pipes import PIPE_SIZE
from ralph.system.tree import LINUX, become_subreaper, descendants, signal_all

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

#: Seconds between TERM and KILL when ralph itself is gone.
_KEEPER_GRACE = 2.0


def _reap() -> bool:
    """Collects every child that has ended. False if there is no child left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


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
        self._channel: Channel | None = None
        self._keeper: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        become_subreaper()  # if the keeper is killed, its orphans become ours
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._channel is not None:
            self._channel.sock.close()
            self._channel = None
        if self._keeper is not None:
            try:
                self._keeper.wait(timeout=15)
            except subprocess.TimeoutExpired:
                self._keeper.kill()
                self._keeper.wait()
            self._keeper = None
            self._sweep_orphans()

    def run(self, command: Command, sink: Sink, deadlines: Deadlines) -> Ended:
        """Runs one command to its end. `sink` gets its output as it arrives."""
        return Execution(
            self._ensure_keeper(), command, sink, deadlines, self._stop, self._tick, keeper_lost=self._keeper_lost
        ).run()

    def _keeper_lost(self) -> None:
        """The keeper died, so someone killed it. Ends the processes it left, so that the next keeper starts clean."""
        if self._channel is not None:
            self._channel.sock.close()
            self._channel = None
        if self._keeper is not None:
            self._keeper.kill()
            self._keeper.wait()
            self._keeper = None
        self._sweep_orphans()

    def _sweep_orphans(self) -> None:
        for _ in range(100):
            childless = not _reap()
            left = descendants(os.getpid())
            # Not by the scan alone: it misses the child of a process that dies during the scan.
            if childless if LINUX else not left:
                return
            signal_all(list(left), 9)
            time.sleep(0.02)

    def _ensure_keeper(self) -> Channel:
        if self._keeper is not None and self._keeper.poll() is not None:
            self._keeper_lost()  # between two commands
        if self._channel is None:
            try:
                ours, theirs = socket.socketpair()
            except OSError as error:
                raise RunError(f"cannot start a process: {error.strerror}") from None
            quiet = None if os.environ.get("RALPH_DEBUG") else subprocess.DEVNULL
            try:
                # Isolated and without site-packages: it starts in milliseconds, and nothing can interfere.
                self._keeper = subprocess.Popen(
                    [
                        *(sys.executable, "-ISB", keeper_module.__file__, str(theirs.fileno()), str(_KEEPER_GRACE)),
                        *map(str, self._locks),
                    ],
                    pass_fds=(theirs.fileno(), *self._locks),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=quiet,
                    cwd="/",
                    env=self._environ,
                )
            except OSError as error:
                raise RunError(f"cannot start a process: {error.strerror}") from None
            finally:
                theirs.close()
            self._channel = Channel(ours)
        return self._channel
