"""Running one command: its bytes as they come, its deadlines, and an end that leaves nothing behind."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import selectors
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ralph.errors import RunError
from ralph.runners import keeper as keeper_module
from ralph.runners.command import Command, Deadlines, Ended, EndKind, Sink, describe_status, signal_name
from ralph.runners.keeper import Channel, become_subreaper, descendants, signal_all
from ralph.runners.pipes import PIPE_SIZE, open_pipe, open_pty

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

_READ_SIZE = 1 << 18
#: After the command has exited, how long a stray may hold a silent pipe open.
_QUIET = 0.5
_DRAIN_LIMIT = 5.0


class Supervisor:
    """Owns the keeper of a run; runs commands one after another. `locks` are held until all of them are gone."""

    def __init__(self, stop: StopSwitch, *, tick: float = 0.2, locks: tuple[int, ...] = ()) -> None:
        self._stop = stop
        self._tick = tick
        self._locks = locks
        self._channel: Channel | None = None
        self._keeper: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        become_subreaper()  # should the keeper itself be killed, its orphans come to us
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
        return _Run(self, self._ensure_keeper(), command, sink, deadlines, self._stop, self._tick).go()

    def keeper_lost(self) -> None:
        """The keeper died (somebody killed it): end what it left to us, so that a new one can start clean."""
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
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            left = descendants(os.getpid())
            if not left:
                return
            signal_all(list(left), 9)
            time.sleep(0.02)

    def _ensure_keeper(self) -> Channel:
        if self._keeper is not None and self._keeper.poll() is not None:
            self.keeper_lost()  # between two commands
        if self._channel is None:
            try:
                ours, theirs = socket.socketpair()
            except OSError as error:
                raise RunError(f"cannot start a process: {error.strerror}") from None
            quiet = None if os.environ.get("RALPH_DEBUG") else subprocess.DEVNULL
            try:
                # Its own session, no site-packages: it starts in milliseconds and nothing can get in its way.
                self._keeper = subprocess.Popen(
                    [
                        *(sys.executable, "-ISB", keeper_module.__file__, str(theirs.fileno()), "2.0"),
                        *map(str, self._locks),
                    ],
                    pass_fds=(theirs.fileno(), *self._locks),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=quiet,
                    cwd="/",
                )
            except OSError as error:
                raise RunError(f"cannot start a process: {error.strerror}") from None
            finally:
                theirs.close()
            self._channel = Channel(ours)
        return self._channel


class _Run:
    """One command from start to end. Every wait here is bounded by the next deadline and by a tick."""

    def __init__(
        self,
        owner: Supervisor,
        channel: Channel,
        command: Command,
        sink: Sink,
        deadlines: Deadlines,
        stop: StopSwitch,
        tick: float,
    ) -> None:
        self.owner = owner
        self.channel = channel
        self.command = command
        self.sink = sink
        self.deadlines = deadlines
        self.stop = stop
        self.tick = tick
        self.selector = selectors.DefaultSelector()
        self.outputs: dict[int, str] = {}
        self.done_with: list[int] = []
        self.stdin_fd = -1
        self.unsent = memoryview(command.stdin or b"")
        self.status: int | None = None
        self.exited_at: float | None = None
        self.finished_at: float | None = None
        self.cause: tuple[EndKind, str] | None = None
        self.ending = False
        self.urgent_sent = False
        self.gone: dict[str, object] | None = None
        self.refused: Ended | None = None
        self.lost = False

    def go(self) -> Ended:
        self.started = self.last_output = time.monotonic()
        self.heard = False
        try:
            try:
                fds = self._open()
            except OSError as error:  # too many open files
                raise RunError(f"cannot start '{self.command.argv[0][:200]}': {error.strerror}") from None
            try:
                message = {
                    "op": "spawn",
                    "argv": self.command.argv,
                    "env": self.command.env,
                    "cwd": self.command.cwd,
                    "pty": self.command.pty,
                    "rescue": len(self._rescue()) // 2,
                }
                self.channel.send(message, (*fds, *self._rescue()))
            except OSError:
                self.lost = True
            finally:
                for fd in set(fds):
                    os.close(fd)
            self.selector.register(self.channel.sock, selectors.EVENT_READ, "keeper")
            self.selector.register(self.stop.fd, selectors.EVENT_READ, "stop")
            next_tick = time.monotonic() + self.tick
            while not self._done():
                until = min(next_tick, self._next_deadline())
                # A wait that ends because we ourselves were stopped (Ctrl-Z) has seen nothing of what came meanwhile.
                for key, _ in self.selector.select(max(0.0, until - time.monotonic())) or self.selector.select(0):
                    self._serve(key)
                now = time.monotonic()
                if now >= next_tick:
                    self.stop.look()
                    self.sink.tick()
                    next_tick = now + self.tick
                self._decide(now)
            self._last_bytes()
            return self._ended()
        finally:
            self._close()

    # -- descriptors

    def _open(self) -> tuple[int, ...]:
        """The child's stdin, stdout, stderr and perhaps descriptor 3; our ends are registered."""
        if self.command.pty:
            master, slave = open_pty()
            self._watch(master, "stdout")
            child_out = child_err = slave
        else:
            out_read, child_out = open_pipe()
            err_read, child_err = open_pipe()
            self._watch(out_read, "stdout")
            self._watch(err_read, "stderr")
        if self.command.stdin is None:
            child_in = os.dup(child_out) if self.command.pty else os.open(os.devnull, os.O_RDONLY)
        else:
            child_in, self.stdin_fd = open_pipe()
            os.set_blocking(self.stdin_fd, False)
            self.selector.register(self.stdin_fd, selectors.EVENT_WRITE, "stdin")
        if self.command.aside is None:
            return child_in, child_out, child_err
        aside_read, child_aside = open_pipe()
        self._watch(aside_read, "aside")
        return child_in, child_out, child_err, child_aside

    def _rescue(self) -> tuple[int, ...]:
        """What we read from and where it goes, in pairs."""
        if self.command.files is None:
            return ()
        files = dict(zip(("stdout", "stderr"), self.command.files, strict=True))
        return tuple(fd for read, name in self.outputs.items() if name in files for fd in (read, files[name].fileno()))

    def _watch(self, fd: int, name: str) -> None:
        os.set_blocking(fd, False)
        self.outputs[fd] = name
        self.selector.register(fd, selectors.EVENT_READ, name)

    def _close(self) -> None:
        self.selector.close()
        for fd in (*self.outputs, *self.done_with):
            os.close(fd)
        if self.stdin_fd >= 0:
            os.close(self.stdin_fd)

    # -- events

    def _serve(self, key: selectors.SelectorKey) -> None:
        match key.data:
            case "stdout" | "stderr" | "aside":
                self._read(key.fd)
            case "stdin":
                self._write()
            case "keeper":
                self._hear_keeper()
            case "stop":
                self.stop.drain()

    def _read(self, fd: int) -> bool:
        """Reads once; False when there is nothing now or never again."""
        try:
            chunk = self._take(fd)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno != errno.EIO:  # EIO is how a PTY says that all its users are gone
                raise
            chunk = b""
        name = self.outputs[fd]
        if not chunk:
            self.selector.unregister(fd)
            del self.outputs[fd]
            # Of a terminal only its users are gone: to close it would be a hang-up for one that is just about to exit.
            self.done_with.append(fd)
            return False
        self.last_output = time.monotonic()
        self.heard = True
        if name == "stdout":
            self.sink.stdout(chunk)
        elif name == "stderr":
            self.sink.stderr(chunk)
        elif self.command.aside is not None:
            self.command.aside(chunk)
        return True

    def _take(self, fd: int) -> bytes:
        """At most so much, written to its file if it has one."""
        if self.command.files is None or self.outputs[fd] not in ("stdout", "stderr"):
            return os.read(fd, _READ_SIZE)
        file = self.command.files[self.outputs[fd] == "stderr"]
        if not self.command.pty:
            return file.take(fd, _READ_SIZE)
        chunk = os.read(fd, _READ_SIZE)
        file.write(chunk)
        return chunk

    def _write(self) -> None:
        try:
            sent = os.write(self.stdin_fd, self.unsent[: 1 << 16]) if self.unsent else 0
        except BlockingIOError:
            return
        except BrokenPipeError:  # it does not read its stdin: its right
            sent = len(self.unsent)
        self.unsent = self.unsent[sent:]
        if not self.unsent:
            self.selector.unregister(self.stdin_fd)
            os.close(self.stdin_fd)
            self.stdin_fd = -1

    def _hear_keeper(self) -> None:
        received = self.channel.receive()
        if received is None:
            self.lost = True
            return
        for message in received[0]:
            match message["ev"]:
                case "refused":
                    self.refused = _refused(self.command, int(str(message["errno"])), str(message["what"]))
                case "exited":
                    self.status = int(str(message["status"]))
                    self.exited_at = time.monotonic()
                case "gone":
                    self.gone = message

    # -- decisions

    def _done(self) -> bool:
        return self.lost or self.refused is not None or self.gone is not None

    def _next_deadline(self) -> float:
        """When `_decide` has something to say though nothing has happened: we wake up then, however slow the tick."""
        if self.ending:
            return math.inf  # the keeper counts the grace
        if self.exited_at is not None:
            return min(max(self.exited_at, self.last_output) + _QUIET, self.exited_at + _DRAIN_LIMIT)
        limits = self.deadlines
        first = self.sink.deadline()
        moments = [math.inf if first is None else first]
        if limits.wall is not None:
            moments.append(self.started + limits.wall)
        if limits.idle is not None:
            moments.append(self.last_output + limits.idle)
        if limits.first_output is not None and not self.heard:
            moments.append(self.started + limits.first_output)
        if limits.linger is not None and self.finished_at is not None:
            moments.append(max(self.finished_at, self.last_output) + limits.linger)
        return min(moments)

    def _decide(self, now: float) -> None:
        """Whether it is time to end the command, or to end what it left."""
        if self._done():
            return
        if self.stop.urgent and self.ending and not self.urgent_sent:
            self._ask({"op": "kill"})
            self.urgent_sent = True
        if self.ending:
            return
        if self.exited_at is not None:
            quiet = now >= max(self.exited_at, self.last_output) + _QUIET
            if not self.outputs or quiet or now >= self.exited_at + _DRAIN_LIMIT:
                # Whatever is left is a stray; those that react to TERM do so at once.
                self._end(min(self.deadlines.grace, 2.0))
            return
        self.cause = self._overdue(now)
        if self.cause is not None:
            self._end(0.0 if self.stop.urgent else self.deadlines.grace)

    def _overdue(self, now: float) -> tuple[EndKind, str] | None:
        if self.stop.kind is not None:
            return EndKind.STOPPED, self.stop.kind.value
        reason = self.sink.stop_reason()
        if reason is not None:
            return EndKind.STOPPED, reason
        limits = self.deadlines
        if limits.linger is not None and self.sink.finished():
            self.finished_at = self.finished_at or now
            if now >= max(self.finished_at, self.last_output) + limits.linger:
                return EndKind.LINGERED, f"still running {limits.linger:g} s after its last word"
        if limits.wall is not None and now >= self.started + limits.wall:
            return EndKind.WALL, f"ran for more than {limits.wall:g} s"
        if limits.idle is not None and now >= self.last_output + limits.idle:
            return EndKind.IDLE, f"no output for {limits.idle:g} s"
        if limits.first_output is not None and not self.heard and now >= self.started + limits.first_output:
            return EndKind.IDLE, f"no output in its first {limits.first_output:g} s"
        return None

    def _end(self, grace: float) -> None:
        self.ending = True
        self._ask({"op": "end", "grace": grace})

    def _ask(self, message: dict[str, object]) -> None:
        try:
            self.channel.send(message)
        except OSError:
            self.lost = True

    # -- the end

    def _last_bytes(self) -> None:
        """All writers are gone, so what is in the pipes is all there will ever be."""
        if self.lost:
            self.owner.keeper_lost()
        for fd in list(self.outputs):
            while fd in self.outputs and self._read(fd):
                pass

    def _ended(self) -> Ended:
        seconds = time.monotonic() - self.started
        if self.refused is not None:
            return self.refused
        if self.lost:
            return Ended(EndKind.LOST, "its keeper process was killed", self.status, seconds)
        assert self.gone is not None
        strays = tuple(str(name) for name in self.gone["strays"])  # type: ignore[attr-defined]
        left = tuple(str(name) for name in self.gone["left"])  # type: ignore[attr-defined]
        kind, reason = self.cause or (EndKind.EXITED, describe_status(self.status))
        return Ended(kind, reason, self.status, seconds, strays if self.cause is None else (), left)


def _refused(command: Command, number: int, what: str) -> Ended:
    program = command.argv[0][:200]
    match number:
        case errno.ENOENT if what == command.cwd[:500]:
            reason = f"the working directory is gone: {command.cwd}"
        case errno.ENOTDIR | errno.EACCES if what == command.cwd[:500]:
            reason = f"the working directory cannot be entered: {command.cwd} ({os.strerror(number)})"
        case errno.ENOENT if what and Path(command.cwd, what).exists():
            reason = f"'{program}' cannot be run: the interpreter that it names is missing"
        case errno.ENOENT | errno.ENOTDIR:
            reason = f"'{program}' was not found"
        case errno.EACCES:
            reason = f"'{what or program}' may not be run (permission denied)"
        case errno.E2BIG:
            size = max(len(os.fsencode(a)) for a in command.argv)
            reason = f"the command line is too long for the system (longest argument: {size:,} bytes)"
        case errno.ENOEXEC:
            reason = f"'{program}' is not a program that the system can run"
        case _:
            reason = f"'{program}' could not be started: {os.strerror(number)}"
    return Ended(EndKind.NOT_STARTED, reason)
