"""What a runner is asked to run, who takes its output, and how it ended."""

from __future__ import annotations

import errno
import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable


class Store(Protocol):
    """A file that keeps the raw bytes of a stream."""

    def fileno(self) -> int: ...
    def write(self, data: bytes) -> None: ...
    def take(self, source: int, size: int) -> bytes:
        """Moves bytes from a pipe into the file and returns them; BlockingIOError if the pipe is empty now."""


class Command(msgspec.Struct, frozen=True):
    """What to run. `stdin` is written to it and closed; None is an empty stdin.

    With `aside`, the command gets a descriptor 3, and `aside` is called with the bytes it writes there. `files` get
    stdout and stderr before the sink does: if ralph is killed, the keeper writes the rest there.
    """

    argv: list[str]
    env: dict[str, str]
    cwd: str
    stdin: bytes | None = None
    pty: bool = False
    aside: Callable[[bytes], None] | None = None
    files: tuple[Store, Store] | None = None


class Deadlines(msgspec.Struct, frozen=True):
    """In seconds; None disables one. `grace` is the time between TERM and KILL."""

    idle: float | None = None
    wall: float | None = None
    first_output: float | None = None
    #: how long it may take to exit after its final message (`Sink.finished`)
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
    #: exit code, or minus the signal; None if it never started or its end was not seen
    status: int | None = None
    seconds: float = 0.0
    #: names of the processes that it left behind and that had to be ended
    strays: tuple[str, ...] = ()
    #: names of the processes that survived KILL
    left: tuple[str, ...] = ()
    #: what happened to the keeper, if someone interfered with it
    keeper: str = ""


class Sink(Protocol):
    """Takes a command's output in chunks of any size, as read from the pipe. It may end the command."""

    def stdout(self, chunk: bytes) -> None: ...
    def stderr(self, chunk: bytes) -> None: ...
    def exited(self) -> None:
        """Called once, when the command itself has exited or is about to be ended. What it printed has been passed on;
        what follows comes from processes that it left, or is a reaction to being ended."""

    def tick(self) -> None:
        """Called several times a second, with or without output."""

    def stop_reason(self) -> str | None:
        """Why the command must end now, if it must."""

    def deadline(self) -> float | None:
        """When to ask for the `stop_reason` again even if nothing has happened, by the monotonic clock."""

    def finished(self) -> bool:
        """Whether the command has sent its final message."""


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


def not_started(command: Command, number: int, what: str) -> Ended:
    """Why a command could not be started: the error number, and the file it concerns."""
    program = command.argv[0][:200]
    match number:
        case errno.ENOENT if what == command.cwd[:500]:
            reason = f"the working directory is gone: {command.cwd}"
        case errno.ENOTDIR | errno.EACCES if what == command.cwd[:500]:
            reason = f"the working directory cannot be entered: {command.cwd} ({os.strerror(number)})"
        case errno.ENOENT if what and Path(command.cwd, what).exists():
            reason = f"'{program}' cannot be run: its interpreter is missing"
        case errno.ENOENT | errno.ENOTDIR:
            reason = f"'{program}' was not found"
        case errno.EACCES:
            reason = f"'{what or program}' cannot be run (permission denied)"
        case errno.E2BIG:
            size = max(len(os.fsencode(a)) for a in command.argv)
            reason = f"the command line is too long for the system (longest argument: {size:,} bytes)"
        case errno.ENOEXEC:
            reason = f"'{program}' is not a program that this system can run"
        case _:
            reason = f"'{program}' could not be started: {os.strerror(number)}"
    return Ended(EndKind.NOT_STARTED, reason)
