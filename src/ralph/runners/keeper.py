"""The keeper: a small process between ralph and the agent that owns all the agent starts.

ralph starts one keeper a run, as a script of its own (nothing but the standard library is imported here), and asks
it over a socket to start commands. The keeper is a *subreaper*: whatever a command leaves behind, however it forked
away, becomes the keeper's child, so the keeper can find and end it. When the socket closes because ralph is gone,
even by SIGKILL, the keeper ends everything it started, saves what was said and not yet read, and then ends itself.
Until then it holds the locks of the run, so that nobody starts another one beside the agent of a dead ralph.

One message is four bytes of length and JSON. To the keeper (a spawn comes with the file descriptors of stdin, stdout,
stderr, and perhaps of a descriptor 3; then `rescue` pairs of one that ralph reads and a file for what it left unread):

    {"op": "spawn", "argv": [...], "env": {...}, "cwd": "...", "pty": false, "rescue": 2}
    {"op": "end", "grace": 5.0}        TERM to all that is left, KILL after the grace
    {"op": "kill"}                     no more grace: cuts short the "end" that is under way

From the keeper:

    {"ev": "started", "pid": 1}        {"ev": "refused", "errno": 2, "what": "..."}
    {"ev": "exited", "status": 0}      (a negative status is a signal)
    {"ev": "gone", "strays": ["sleep"], "left": []}
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LINUX = sys.platform.startswith("linux")
_KILL_WAIT = 5.0


def _prctl(option: int, value: int) -> None:
    if _LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def become_subreaper() -> None:
    """Orphans among this process's descendants become its children instead of init's (Linux)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def descendants(root: int) -> dict[int, str]:
    """Every living process below `root`: pid and name."""
    parents: dict[int, int] = {}
    labels: dict[int, str] = {}
    for pid, parent, name in _processes():
        parents[pid] = parent
        labels[pid] = name
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    found: dict[int, str] = {}
    queue = list(children.get(root, []))
    while queue:
        pid = queue.pop()
        if pid not in found:
            found[pid] = labels[pid]
            queue.extend(children.get(pid, []))
    return found


def _processes() -> list[tuple[int, int, str]]:
    """(pid, parent, name) of all processes that are not zombies."""
    rows: list[tuple[int, int, str]] = []
    if not _LINUX:
        listing = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid=,state=,comm="], capture_output=True, text=True, check=False
        )
        for line in listing.stdout.splitlines():
            fields = line.split(None, 3)
            if len(fields) == 4 and not fields[2].startswith("Z"):
                rows.append((int(fields[0]), int(fields[1]), fields[3]))
        return rows
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as stat:
                head, _, rest = stat.read().rpartition(b")")
        except OSError:  # it ended while we looked
            continue
        state, parent = rest.split()[:2]
        if state not in (b"Z", b"X"):
            rows.append((int(entry), int(parent), head.partition(b"(")[2].decode("utf-8", "replace")))
    return rows


def signal_all(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def freeze(root: int, deadline: float) -> dict[int, str]:
    """Stops all below `root`, until a look finds nothing new: what is stopped cannot fork while the rest is found."""
    frozen: dict[int, str] = {}
    while True:
        new = {pid: name for pid, name in descendants(root).items() if pid not in frozen}
        if not new or time.monotonic() >= deadline:
            return frozen | new
        signal_all(list(new), signal.SIGSTOP)
        frozen.update(new)


class Channel:
    """Framed JSON, with file descriptors, over a stream socket."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._buffer = b""
        self._fds: list[int] = []

    def send(self, message: dict[str, object], fds: tuple[int, ...] = ()) -> None:
        body = json.dumps(message).encode("ascii")
        data = struct.pack(">I", len(body)) + body
        if fds:
            sent = socket.send_fds(self.sock, [data[:1]], list(fds))
            data = data[sent:]
        self.sock.sendall(data)

    def receive(self) -> tuple[list[dict[str, object]], list[int]] | None:
        """What has arrived (at least one read), or None at the end of the stream."""
        try:
            data, fds, _, _ = socket.recv_fds(self.sock, 1 << 16, 8)
        except ConnectionResetError:
            return None
        if not data:
            return None
        self._buffer += data
        for fd in fds:
            os.set_inheritable(fd, False)
        self._fds.extend(fds)
        messages = []
        while len(self._buffer) >= 4:
            (size,) = struct.unpack(">I", self._buffer[:4])
            if len(self._buffer) < 4 + size:
                break
            messages.append(json.loads(self._buffer[4 : 4 + size]))
            self._buffer = self._buffer[4 + size :]
        if not any(message.get("op") == "spawn" for message in messages):
            return messages, []  # descriptors that came along belong to a spawn whose body is still on its way
        fds, self._fds = self._fds, []
        return messages, fds


class Keeper:
    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.child = 0
        self.hurry = False
        self.unread: list[tuple[int, int]] = []

    def serve(self) -> None:
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_read, False)
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # The terminal's signals and a polite TERM are for ralph to answer; it tells us what to do.
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
                # A "kill" that came together with its "end" leaves no grace; one that comes when all is over is
                # not answered, as a second "gone" would be taken for the end of the next command.
                urgent = any(message["op"] == "kill" for message in received[0])
                for message in received[0]:
                    self.handle(message, received[1], urgent=urgent)

    def handle(self, message: dict[str, object], fds: list[int], *, urgent: bool) -> None:
        match message["op"]:
            case "spawn":
                self.forget()
                split = len(fds) - 2 * int(str(message.get("rescue", 0)))
                self.unread = list(zip(fds[split::2], fds[split + 1 :: 2], strict=True))
                self.spawn(message, fds[:split])
                for fd in fds[:split]:
                    os.close(fd)
            case "end":
                self.end(0.0 if urgent else float(str(message["grace"])))

    def forget(self) -> None:
        """The descriptors of the command before."""
        for pair in self.unread:
            for fd in pair:
                os.close(fd)
        self.unread = []

    def rescue(self) -> None:
        """What the command said and a ralph that is gone has not read. All writers are gone: it is all there is."""
        for source, file in self.unread:
            os.set_blocking(source, False)
            # nothing more to read, a PTY without users (EIO), a full disk: there is nobody left to tell
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
        """Collects every child that has ended; the command itself is reported. True: there is no child at all."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if pid == self.child:
                self.child = 0
                self._tell({"ev": "exited", "status": os.waitstatus_to_exitcode(status)})

    def end(self, grace: float) -> None:
        """Ends all that is left, TERM first. Reports what had to be ended and what could not be."""
        self.hurry = False
        strays: dict[int, str] = {}
        gone = self._gone()
        if not gone and grace > 0:
            strays = descendants(os.getpid())
            signal_all(list(strays), signal.SIGTERM)
            signal_all(list(strays), signal.SIGCONT)  # a stopped process cannot act on TERM
            gone = self._wait_gone(time.monotonic() + grace)
        self.hurry = False
        deadline = time.monotonic() + _KILL_WAIT
        while not gone and time.monotonic() < deadline:
            # Again and again: what is being killed may be forking.
            left = freeze(os.getpid(), deadline)
            signal_all(list(left), signal.SIGKILL)
            strays.update(left)
            gone = self._wait_gone(time.monotonic() + 0.05)
        left = {} if gone else descendants(os.getpid())
        self._tell({"ev": "gone", "strays": sorted(set(strays.values())), "left": sorted(left.values())})

    def _gone(self) -> bool:
        """Whether nothing is left. For a subreaper, to have no child is to have no descendant: the kernel's word, while
        a look through the process table misses what is forked during the look."""
        childless = self.reap()
        return childless if _LINUX else not descendants(os.getpid())

    def _wait_gone(self, deadline: float) -> bool:
        pause = 0.002
        while not self._gone():
            if self.hurry or time.monotonic() >= deadline:
                return False
            self._pause(pause)
            pause = min(pause * 2, 0.1)
        return True

    def _pause(self, seconds: float) -> None:
        """Sleeps, but hears a "kill" that comes while we are being patient."""
        ready, _, _ = select.select([self.channel.sock], [], [], seconds)
        if ready:
            received = self.channel.receive()
            if received is None:  # ralph is gone as well; the grace it gave still holds
                time.sleep(seconds)
            elif any(message["op"] == "kill" for message in received[0]):
                self.hurry = True

    def _tell(self, message: dict[str, object]) -> None:
        with contextlib.suppress(OSError):  # ralph is gone: then there is nobody to tell
            self.channel.send(message)


def _report_pipe() -> tuple[int, int]:
    """Out of the way of the descriptors that a command gets."""
    import fcntl

    read, low = os.pipe()
    write = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(low)
    return read, write


def _become(argv: list[bytes], env: dict[bytes, bytes], cwd: str, fds: list[int], parent: int, *, pty: bool) -> None:
    """In the child: the agent's own session, working directory, descriptors and signals, then exec."""
    os.setsid()
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
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
    """Like execvpe, but looking in the child's own PATH and naming what was not found."""
    name = argv[0]
    if b"/" in name:
        os.execve(name, argv, env)
    denied = False
    for folder in env.get(b"PATH", os.fsencode(os.defpath)).split(b":"):
        program = os.path.join(folder or b".", name)  # noqa: PTH118 - bytes
        try:
            os.execve(program, argv, env)
        except (FileNotFoundError, NotADirectoryError):
            if os.path.exists(program):  # noqa: PTH110 - then it is its interpreter that is missing
                raise
        except PermissionError:
            denied = True
    number = errno.EACCES if denied else errno.ENOENT
    raise OSError(number, os.strerror(number), os.fsdecode(name))


def main() -> None:
    os.setsid()  # neither Ctrl-C nor the end of the terminal reaches us
    become_subreaper()
    sock = socket.socket(fileno=int(sys.argv[1]))
    sock.set_inheritable(False)
    keeper = Keeper(Channel(sock))
    for lock in sys.argv[3:]:
        os.set_inheritable(int(lock), False)  # ours until we end, and nobody else's
    keeper.serve()
    keeper.end(float(sys.argv[2]))
    keeper.rescue()


if __name__ == "__main__":
    main()
