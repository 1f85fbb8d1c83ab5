"""One command from start to end: its output to the sink as it arrives, its deadlines, and how it ended."""

from __future__ import annotations

import errno
import math
import os
import selectors
import time
from typing import TYPE_CHECKING

from ralph.errors import RunError
from ralph.runners.command import Command, Deadlines, Ended, EndKind, Sink, describe_status, not_started
from ralph.runners.heartbeat import Heartbeat
from ralph.runners.pipes import open_pipe, open_pty
from ralph.runners.timers import Timers
from ralph.system import watcher

if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.runners.owned import OwnedKeeper
    from ralph.runners.stop import StopSwitch

_READ_SIZE = 1 << 18
#: More than a full pipe or terminal takes. Another process may fill it again and again.
_LAST_READS = 32


class Execution:
    """One command from start to end. Every wait is bounded by the next deadline and by a tick."""

    def __init__(
        self,
        keeper: OwnedKeeper,
        command: Command,
        sink: Sink,
        deadlines: Deadlines,
        stop: StopSwitch,
        tick: float,
        *,
        keeper_lost: Callable[[], tuple[str, ...]],
    ) -> None:
        """`keeper_lost` is called when the keeper has died or does not answer: it ends everything that is left.

        It returns the names of the processes that cannot be ended.
        """
        self.keeper_lost = keeper_lost
        self.keeper = keeper
        self.channel = keeper.channel
        self.heartbeat = Heartbeat()
        self.command = command
        self.sink = sink
        self.deadlines = deadlines
        self.timers = Timers(deadlines, time.monotonic())
        self.stop = stop
        self.tick = tick
        self.selector = selectors.DefaultSelector()
        self.outputs: dict[int, str] = {}
        self.finished_outputs: list[int] = []
        self.stdin_fd = -1
        self.unsent = memoryview(command.stdin or b"")
        self.status: int | None = None
        self.cause: tuple[EndKind, str] | None = None
        self.ending = False
        self.urgent_sent = False
        self.answer_closed = False
        self.gone: dict[str, object] | None = None
        self.refused: Ended | None = None
        self.lost = False
        self.left: tuple[str, ...] = ()
        self.interference = ""

    def run(self) -> Ended:
        try:
            self._start()
            self.selector.register(self.channel.sock, selectors.EVENT_READ, "keeper")
            self.selector.register(self.stop.fd, selectors.EVENT_READ, "stop")
            next_tick = time.monotonic() + self.tick
            while not self._done():
                until = min(next_tick, self._next_deadline())
                # After Ctrl-Z and `fg` the wait ends empty, although output may have arrived: look once more.
                for key, _ in self.selector.select(max(0.0, until - time.monotonic())) or self.selector.select(0):
                    self._serve(key)
                now = time.monotonic()
                if now >= next_tick:
                    self.stop.check()
                    self.sink.tick()
                    self._check_keeper(now)
                    next_tick = now + self.tick
                self._decide(now)
            self._drain()
            return self._ended()
        finally:
            self._close()

    # -- descriptors

    def _start(self) -> None:
        try:
            fds = self._open()
        except OSError as error:  # too many open files
            raise RunError(f"cannot start '{self.command.argv[0][:200]}': {error.strerror}") from None
        try:
            self._wake()
            message = {
                "op": "spawn",
                "argv": self.command.argv,
                "env": watcher.marked(self.command.env),
                "cwd": self.command.cwd,
                "pty": self.command.pty,
                "rescue": len(self._rescue()) // 2,
            }
            self.channel.send(message, (*fds, *self._rescue()))
        except OSError:
            self._lose("was killed or did not answer")
        finally:
            for fd in set(fds):
                os.close(fd)

    def _open(self) -> tuple[int, ...]:
        """Opens the child's stdin, stdout, stderr and, if wanted, descriptor 3. Our ends are registered here."""
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
        """Pairs of descriptors: one that we read from, and the file that its output goes to."""
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
        for fd in (*self.outputs, *self.finished_outputs):
            os.close(fd)
        if self.stdin_fd >= 0:
            os.close(self.stdin_fd)

    # -- events

    def _serve(self, key: selectors.SelectorKey) -> None:
        match key.data:
            case "stdout" | "stderr" | "aside":
                if key.fd in self.outputs:  # it may have ended when the command exited
                    self._read(key.fd)
            case "stdin":
                self._write()
            case "keeper":
                self._read_keeper()
            case "stop":
                self.stop.drain()

    def _read(self, fd: int) -> bool:
        """Reads once and passes the bytes to the sink. False if nothing is there now, or ever will be."""
        try:
            chunk = self._read_and_store(fd)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno != errno.EIO:  # a PTY reports EIO when all its users are gone
                raise
            chunk = b""
        name = self.outputs[fd]
        if not chunk:
            self.selector.unregister(fd)
            del self.outputs[fd]
            # Closed later: closing a terminal now would send a hang-up to a command that is about to exit.
            self.finished_outputs.append(fd)
            return False
        self.timers.output(time.monotonic())
        if name == "stdout":
            self.sink.stdout(chunk)
        elif name == "stderr":
            self.sink.stderr(chunk)
        elif self.command.aside is not None:
            self.command.aside(chunk)
        return True

    def _read_and_store(self, fd: int) -> bytes:
        """The next bytes of an output, after they were written to its file if it has one."""
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
        except BrokenPipeError:  # a command need not read its stdin
            sent = len(self.unsent)
        self.unsent = self.unsent[sent:]
        if not self.unsent:
            self.selector.unregister(self.stdin_fd)
            os.close(self.stdin_fd)
            self.stdin_fd = -1

    def _read_keeper(self) -> None:
        received = self.channel.receive()
        if received is None:
            self._lose("was killed")
            return
        for message in received[0]:
            match message["ev"]:
                case "refused":
                    self.refused = not_started(self.command, int(str(message["errno"])), str(message["what"]))
                case "exited":
                    self.status = int(str(message["status"]))
                    self.timers.exited(time.monotonic())
                    self._close_answer()
                case "pong":
                    self.heartbeat.answered()
                case "gone":
                    self.gone = message

    # -- decisions

    def _done(self) -> bool:
        return self.lost or self.refused is not None or self.gone is not None

    def _next_deadline(self) -> float:
        """When `_decide` may have to act even if nothing happens until then. It does not wait for the tick."""
        return math.inf if self.ending else self.timers.next(self.sink.deadline())  # the keeper counts the grace period

    def _decide(self, now: float) -> None:
        """Ends the command, or the processes it left, if it is time to."""
        if self._done():
            return
        if self.stop.urgent and self.ending and not self.urgent_sent:
            self._ask({"op": "kill"})
            self.heartbeat.ending(now, 0.0)
            self.urgent_sent = True
        if self.ending:
            return
        if self.timers.has_exited:
            if not self.outputs or self.timers.drained(now):
                # Processes that are still there are strays. Those that react to TERM do so at once.
                self._end(min(self.deadlines.grace, 2.0))
            return
        self.cause = self._reason_to_end(now)
        if self.cause is not None:
            self._end(0.0 if self.stop.urgent else self.deadlines.grace)

    def _reason_to_end(self, now: float) -> tuple[EndKind, str] | None:
        if self.stop.kind is not None:
            return EndKind.STOPPED, self.stop.kind.value
        reason = self.sink.stop_reason()
        if reason is not None:
            return EndKind.STOPPED, reason
        return self.timers.overdue(now, finished=self.sink.finished)

    def _end(self, grace: float) -> None:
        self.ending = True
        self._close_answer()
        self._wake()
        self._ask({"op": "end", "grace": grace})
        self.heartbeat.ending(time.monotonic(), grace)

    def _close_answer(self) -> None:
        """Reads what the command itself has left in the pipes, and tells the sink."""
        if self.answer_closed:
            return
        self.answer_closed = True
        for fd in list(self.outputs):
            for _ in range(_LAST_READS):
                if fd not in self.outputs or not self._read(fd):
                    break
        self.sink.exited()

    def _ask(self, message: dict[str, object]) -> None:
        try:
            self.channel.send(message)
        except OSError:
            self._lose("was killed or did not answer")

    # -- the keeper

    def _check_keeper(self, now: float) -> None:
        """The agent may stop the keeper, or hold it with a debugger: continues it, or gives it up."""
        if self._done():
            return
        if self.heartbeat.ask(now):
            self._ask({"op": "ping"})
        elif self.heartbeat.is_silent(now):
            self._wake()
        if self.heartbeat.is_lost(now):
            self._lose("did not answer and was killed")

    def _wake(self) -> None:
        if self.keeper.wake():
            self.interference = self.interference or "had been stopped and was continued"

    def _lose(self, how: str) -> None:
        self.lost = True
        self.interference = how

    # -- the end

    def _drain(self) -> None:
        """Reads what is left in the pipes. All writers are gone, so no more output can follow."""
        if self.lost:
            self.left = self.keeper_lost()
        for fd in list(self.outputs):
            while fd in self.outputs and self._read(fd):
                pass

    def _ended(self) -> Ended:
        seconds = time.monotonic() - self.timers.started
        if self.refused is not None:
            return self.refused
        if self.lost:
            kind, reason = self.cause or (EndKind.LOST, f"its keeper process {self.interference}")
            return Ended(kind, reason, self.status, seconds, (), self.left, self.interference)
        assert self.gone is not None
        strays = tuple(str(name) for name in self.gone["strays"])  # type: ignore[attr-defined]
        left = tuple(str(name) for name in self.gone["left"])  # type: ignore[attr-defined]
        kind, reason = self.cause or (EndKind.EXITED, describe_status(self.status))
        return Ended(kind, reason, self.status, seconds, strays if self.cause is None else (), left, self.interference)
