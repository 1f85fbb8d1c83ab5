"""What a runner is asked to run, and what it answers."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable


class Store(Protocol):
    """A file for a stream."""

    def fileno(self) -> int: ...
    def write(self, data: bytes) -> None: ...
    def take(self, source: int, size: int) -> bytes:
        """Moves what a pipe holds into the file and gives it back; BlockingIOError if that is nothing now."""


class Command(msgspec.Struct, frozen=True):
    """What to run. `stdin` is written to it and closed; None is an empty stdin.

    With `aside`, the command gets a descriptor 3, and `aside` what it writes there. `files` take stdout
    and stderr before the sink sees them: should ralph be killed, the rest is written there without it.
    """

    argv: list[str]
    env: dict[str, str]
    cwd: str
    stdin: bytes | None = None
    pty: bool = False
    aside: Callable[[bytes], None] | None = None
    files: tuple[Store, Store] | None = None


class Deadlines(msgspec.Struct, frozen=True):
    """Seconds; None is never. `grace` is what a command gets between TERM and KILL."""

    idle: float | None = None
    wall: float | None = None
    first_output: float | None = None
    #: after the agent's own last word (`Sink.finished`), how long it may take to exit
    linger: float | None = None
    grace: float = 5.0


class EndKind(StrEnum):
    EXITED = "exited"
    NOT_STARTED = "not_started"
    IDLE = "idle"
    WALL = "wall"
    LINGERED = "lingered"
    STOPPED = "stopped"
    LOST = "lost"


class Ended(msgspec.Struct, frozen=True):
    kind: EndKind
    reason: str
    #: exit code, or minus the signal; None when it never started or its end was not seen
    status: int | None = None
    seconds: float = 0.0
    #: names of processes that were still there at the end and had to be ended
    strays: tuple[str, ...] = ()
    #: names of processes that even KILL did not end
    left: tuple[str, ...] = ()


class Sink(Protocol):
    """Who takes the bytes. It may end the command by giving a `stop_reason`."""

    def stdout(self, chunk: bytes) -> None: ...
    def stderr(self, chunk: bytes) -> None: ...
    def tick(self) -> None: ...
    def stop_reason(self) -> str | None: ...
    def deadline(self) -> float | None:
        """When to ask for the `stop_reason` again though nothing has happened, by the monotonic clock."""

    def finished(self) -> bool: ...


def describe_status(status: int | None) -> str:
    if status is None:
        return "ended"
    if status >= 0:
        return f"exited with code {status}"
    return f"was ended by signal {signal_name(-status)}"


def signal_name(number: int) -> str:
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
