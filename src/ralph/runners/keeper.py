"""The keeper: a small process between ralph and the agent that owns every process the agent starts.

ralph starts one keeper per run, as a script in an interpreter of its own, and asks it over a socket to start commands.
It imports nothing but the standard library and the two modules beside it, so it starts in milliseconds.

The keeper is a *subreaper*: whatever a command leaves behind, however it forked, becomes the keeper's child, so the
keeper can find it and end it. When the socket closes because ralph is gone (even after SIGKILL), the keeper ends
everything it started, saves the output that ralph had not read yet, and exits. Until then it holds the run's locks, so
that no other run can start beside the agent of a dead ralph.

Messages to the keeper. A spawn carries the file descriptors for stdin, stdout, stderr and optionally descriptor 3, then
`rescue` pairs: a descriptor that ralph reads from, and the file for what it leaves unread.

    {"op": "spawn", "argv": [...], "env": {...}, "cwd": "...", "pty": false, "rescue": 2}
    {"op": "end", "grace": 5.0}        TERM to every process that is left, KILL after the grace period
    {"op": "kill"}                     cuts the grace period of the current "end" short
    {"op": "ping"}                     answered at once, unless someone has stopped the keeper

Messages from the keeper:

    {"ev": "started", "pid": 1}        {"ev": "refused", "errno": 2, "what": "..."}
    {"ev": "exited", "status": 0}      (a negative status is a signal)
    {"ev": "gone", "strays": ["sleep"], "left": []}
    {"ev": "pong"}
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import socket
import sys
import time

if __name__ == "__main__":
    # Started with -I -S, this script does not find its own package. It goes last, so that it can hide nothing.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # noqa: PTH100, PTH120

from ralph.runners.channel import Channel
from ralph.system import cgroup
from ralph.system.tree import (
    LINUX,
    become_subreaper,
    descendants,
    kill_children,
    refuse_tracing,
    signal_all,
    signal_when_parent_ends,
)

_KILL_WAIT = 5.0


class Keeper:
    """Runs one command at a time, as requested over the channel."""

    def __init__(self, channel: Channel, group: str) -> None:
        """`group` is a cgroup for the commands, or empty."""
        self.channel = channel
        self.group = group
        self.child = 0
        self.no_grace = False
        self.unread: list[tuple[int, int]] = []

    def serve(self) -> None:
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_read, False)
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # ralph handles the terminal's signals and TERM, and tells us what to do.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)
        sock = self.channel.sock
        while True:
            ready, _, _ = select.select([sock.fileno(), wake_read], [], [])
            if wake_read in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(wake_read, 4096)
                self.reap()
            if sock.fileno() in ready:
                received = self.channel.receive()
                if received is None:
                    break
                # A "kill" that arrives with its "end" leaves no grace period. One that arrives after the end gets no
                # answer: ralph would take a second "gone" for the end of the next command.
                urgent = any(message["op"] == "kill" for message in received[0])
                for message in received[0]:
                    self.handle(message, received[1], urgent=urgent)

    def handle(self, message: dict[str, object], fds: list[int], *, urgent: bool) -> None:
        match message["op"]:
            case "spawn":
                self._close_unread()
                split = len(fds) - 2 * int(str(message.get("rescue", 0)))
                self.unread = list(zip(fds[split::2], fds[split + 1 :: 2], strict=True))
                self.spawn(message, fds[:split])
                for fd in fds[:split]:
                    os.close(fd)
            case "ping":
                self._report({"ev": "pong"})
            case "end":
                self.end(0.0 if urgent else float(str(message["grace"])))

    def _close_unread(self) -> None:
        """Closes the descriptors of the previous command."""
        for pair in self.unread:
            for fd in pair:
                os.close(fd)
        self.unread = []

    def rescue(self) -> None:
        """Saves the output that a dead ralph has not read. All writers are gone, so no more output can follow."""
        for source, file in self.unread:
            os.set_blocking(source, False)
            # End of data, a PTY without users (EIO) or a full disk: nobody is left to report it to.
            with contextlib.suppress(OSError):
                while data := os.read(source, 1 << 16):
                    view = memoryview(data)
                    while view:
                        view = view[os.write(file, view) :]

    def spawn(self, message: dict[str, object], fds: list[int]) -> None:
        argv = [os.fsencode(a) for a in message["argv"]]  # type: ignore[attr-defined]
        env = {os.fsencode(k): os.fsencode(v) for k, v in message["env"].items()}  # type: ignore[attr-defined]
        cwd = str(message["cwd"])
        parent = os.getpid()
        report_read, report_write = _report_pipe()
        try:
            pid = os.fork()
        except OSError as error:  # too many processes
            os.close(report_read)
            os.close(report_write)
            self.channel.send({"ev": "refused", "errno": error.errno or 0, "what": ""})
            return
        if pid == 0:
            try:
                if self.group:
                    cgroup.enter(self.group)
                _become(argv, env, cwd, fds, parent, pty=bool(message.get("pty")))
            except OSError as error:
                what = os.fsdecode(error.filename or b"")[:500]
                os.write(report_write, f"{error.errno or 0} {what}".encode("utf-8", "replace"))
            finally:
                os._exit(127)
        os.close(report_write)
        with os.fdopen(report_read, "rb") as report:
            failure = report.read().decode("utf-8", "replace")
        if failure:
            os.waitpid(pid, 0)
            code, _, what = failure.partition(" ")
            self.channel.send({"ev": "refused", "errno": int(code), "what": what})
            return
        self.child = pid
        self.channel.send({"ev": "started", "pid": pid})

    def reap(self) -> bool:
        """Collects every child that has ended and reports the command's own end. True if no child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if pid == self.child:
                self.child = 0
                self._report({"ev": "exited", "status": os.waitstatus_to_exitcode(status)})

    def end(self, grace: float) -> None:
        """Ends every process that is left, TERM first. Reports which had to be ended and which survived."""
        self.no_grace = False
        gone = self._gone()
        strays = {} if gone else descendants(os.getpid())
        if not gone and grace > 0:
            signal_all(list(strays), signal.SIGTERM)
            signal_all(list(strays), signal.SIGCONT)  # a stopped process cannot act on TERM
            gone = self._wait_gone(time.monotonic() + grace)
        self.no_grace = False
        deadline = time.monotonic() + _KILL_WAIT
        while not gone and time.monotonic() < deadline:
            if self.group:
                cgroup.kill(self.group)
            for _ in range(20):  # quickly: a process may fork, exit, and leave its child to us
                kill_children()
                gone = self._gone()
            gone = gone or self._wait_gone(time.monotonic() + 0.01)
        left = {} if gone else descendants(os.getpid())
        self._report({"ev": "gone", "strays": sorted(set(strays.values())), "left": sorted(left.values())})

    def _gone(self) -> bool:
        """Whether no process is left.

        A subreaper without children has no descendants. The kernel guarantees that, while a scan of the process table
        misses what is forked during the scan.
        """
        childless = self.reap()
        return childless if LINUX else not descendants(os.getpid())

    def _wait_gone(self, deadline: float) -> bool:
        pause = 0.002
        while not self._gone():
            if self.no_grace or time.monotonic() >= deadline:
                return False
            self._pause(pause)
            pause = min(pause * 2, 0.1)
        return True

    def _pause(self, seconds: float) -> None:
        """Sleeps, but notices a "kill" that arrives meanwhile."""
        ready, _, _ = select.select([self.channel.sock], [], [], seconds)
        if ready:
            received = self.channel.receive()
            if received is None:  # ralph is gone too; its grace period still applies
                time.sleep(seconds)
                return
            self.no_grace = self.no_grace or any(message["op"] == "kill" for message in received[0])
            if any(message["op"] == "ping" for message in received[0]):
                self._report({"ev": "pong"})

    def _report(self, message: dict[str, object]) -> None:
        with contextlib.suppress(OSError):  # ralph is gone, so nobody is listening
            self.channel.send(message)


def _report_pipe() -> tuple[int, int]:
    """A pipe whose write end has a number above the descriptors that a command gets."""
    import fcntl

    read, low = os.pipe()
    write = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(low)
    return read, write


def _become(argv: list[bytes], env: dict[bytes, bytes], cwd: str, fds: list[int], parent: int, *, pty: bool) -> None:
    """In the child: sets up the agent's session, working directory, descriptors and signals, then calls exec."""
    os.setsid()
    signal_when_parent_ends(signal.SIGKILL)
    if os.getppid() != parent:  # the keeper died before PDEATHSIG was set
        os._exit(127)
    os.chdir(cwd)
    for target, fd in enumerate(fds[:4]):
        if fd == target:
            os.set_inheritable(fd, True)
        else:
            os.dup2(fd, target, inheritable=True)
    if pty:
        import fcntl
        import termios

        fcntl.ioctl(1, termios.TIOCSCTTY, 0)
    for number in (
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGPIPE,
        signal.SIGXFSZ,
        signal.SIGCHLD,
    ):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    _exec(argv, env)


def _exec(argv: list[bytes], env: dict[bytes, bytes]) -> None:
    """Like execvpe, but searches the absolute folders of the child's own PATH, and names what was not found."""
    name = argv[0]
    if b"/" in name:
        os.execve(name, argv, env)
    denied = False
    for folder in env.get(b"PATH", os.fsencode(os.defpath)).split(b":"):
        if not folder.startswith(b"/"):
            continue  # the agent's program must not come from the work tree
        program = os.path.join(folder, name)  # noqa: PTH118 - bytes
        try:
            os.execve(program, argv, env)
        except (FileNotFoundError, NotADirectoryError):
            if os.path.exists(program):  # noqa: PTH110 - so its interpreter is missing
                raise
        except PermissionError:
            denied = True
    number = errno.EACCES if denied else errno.ENOENT
    raise OSError(number, os.strerror(number), os.fsdecode(name))


def main() -> None:
    # In a session of its own, so neither Ctrl-C nor a closed terminal reaches us.
    become_subreaper()
    refuse_tracing()
    signal_when_parent_ends(signal.SIGCONT)  # the agent may have stopped us, and ralph is no longer there to notice
    sock = socket.socket(fileno=int(sys.argv[1]))
    sock.set_inheritable(False)
    keeper = Keeper(Channel(sock), sys.argv[3])
    for lock in sys.argv[4:]:
        os.set_inheritable(int(lock), False)  # we hold it until we exit; the agent must not inherit it
    keeper.serve()
    keeper.end(float(sys.argv[2]))
    keeper.rescue()


if __name__ == "__main__":
    main()
