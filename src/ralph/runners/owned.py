"""ralph's side of the keeper: starting it, waking it up, ending it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress

from ralph.errors import RunError
from ralph.runners import keeper as keeper_module
from ralph.runners.channel import Channel
from ralph.system import children, tree, watcher

#: Seconds between TERM and KILL when ralph itself is gone.
_KEEPER_GRACE = 2.0
#: How long a keeper without commands may take to exit.
_EXIT_WAIT = 10.0
#: The keeper reads a message at once, unless someone has stopped it.
_SEND_WAIT = 5.0


class OwnedKeeper:
    """A running keeper. It holds `locks` and ends everything in `group`, a cgroup, until it exits."""

    def __init__(self, locks: tuple[int, ...], environ: dict[str, str] | None, group: str | None) -> None:
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            raise RunError(f"cannot start a process: {error.strerror}") from None
        ours.settimeout(_SEND_WAIT)
        try:
            # Isolated and without site-packages: it starts in milliseconds, and nothing can interfere.
            self.process = children.start(
                [
                    *(sys.executable, "-ISB", keeper_module.__file__, str(theirs.fileno()), str(_KEEPER_GRACE)),
                    *(group or "", *map(str, locks)),
                ],
                pass_fds=(theirs.fileno(), *locks),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=None if os.environ.get("RALPH_DEBUG") else subprocess.DEVNULL,
                cwd="/",
                env=environ,
            )
        except OSError as error:
            ours.close()
            raise RunError(f"cannot start a process: {error.strerror}") from None
        finally:
            theirs.close()
        self.channel = Channel(ours)
        watcher.tell(f"keeper {self.process.pid} {group or ''}")

    @property
    def pid(self) -> int:
        return self.process.pid

    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def wake(self) -> bool:
        """Continues the keeper if someone has stopped it. True if that was the case."""
        stopped = tree.state_of(self.pid) in ("T", "t")
        with suppress(OSError):
            os.kill(self.pid, signal.SIGCONT)
        return stopped

    def close(self) -> None:
        """Asks the keeper to end what is left and exit. It is killed if it does not."""
        self.channel.sock.close()
        end = time.monotonic() + _EXIT_WAIT
        while time.monotonic() < end:
            self.wake()
            try:
                self.process.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                continue
            break
        self.kill()

    def kill(self) -> None:
        """Ends the keeper. What it started becomes ours, because we are a subreaper."""
        self.channel.sock.close()
        children.finish(self.process)
        watcher.tell("keeper")
