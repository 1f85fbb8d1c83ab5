"""One run per directory, one process per run. The kernel holds the locks, so a dead process never blocks others.

A process that ends normally empties its lock file. A file that is neither locked nor empty is left by one that died.
The lock of a directory is held on the directory itself, too: the file may be deleted (`git clean -fdx`).
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ralph.errors import RunError, UsageError
from ralph.system.files import open_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType


#: The longest time that a keeper takes to end the processes of a dead ralph.
_ENDING = 15.0


class RunLock:
    """A lock for the time of a `with` block.

    Several processes can hold a `shared` one. `holders` names them for messages, if the lock file does not. With
    `directory`, it is also held on that directory.
    """

    def __init__(
        self,
        path: Path,
        *,
        directory: Path | None = None,
        shared: bool = False,
        holders: Callable[[], str] = lambda: "",
    ) -> None:
        self._path = path
        self._directory = directory
        self._directory_fd: int | None = None
        self._how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        self._holders = holders
        self._fd = -1

    def __enter__(self) -> Self:
        try:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise RunError(f"the journal cannot be written: {self._path}: {error.strerror}") from None
        if self._directory is not None:
            self._directory_fd = _open_directory(self._directory)
        if not self._take():
            holder = self._holders() or _content(self._fd)
            self._close()
            raise UsageError(
                f"a run is already active in this directory ({holder or 'its process is unknown'}).\n"
                "  Wait for it or stop it (`ralph stop`); `ralph tail -f` shows what it is doing.\n"
                "  Runs that do not interfere with each other can run side by side: start each with --exclusive=no."
            )
        return self

    @property
    def fds(self) -> tuple[int, ...]:
        """The lock is held until all copies of these descriptors are closed."""
        return (self._fd,) if self._directory_fd is None else (self._fd, self._directory_fd)

    def _close(self) -> None:
        for fd in self.fds:
            os.close(fd)

    def _take(self) -> bool:
        """Retries for a moment, because `is_locked` in another process also takes the lock for an instant.

        It waits longer if the holder is dead: the keeper is then ending the processes that it left.
        """
        attempt = 0
        end = time.monotonic() + _ENDING
        while attempt < 20 or (_all_dead(_content(self._fd) or self._holders()) and time.monotonic() < end):
            if _locked(self._fd, self._how):
                if self._directory_fd is None or _locked(self._directory_fd, self._how):
                    return True
                if _is_locked_for_us(self._directory_fd):
                    return True
                fcntl.flock(self._fd, fcntl.LOCK_UN)
            time.sleep(min(0.001 * attempt, 0.1))
            attempt += 1
        return False

    def claim(self, run_id: str) -> None:
        """Writes the holder into the lock file, for the message to a second process."""
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"run {run_id}, process {os.getpid()}\n".encode(), 0)
        except OSError as error:
            raise RunError(f"the journal cannot be written: {self._path}: {error.strerror}") from None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._how == fcntl.LOCK_EX:  # nobody else holds it, and a normal end leaves no name
            with suppress(OSError):
                os.ftruncate(self._fd, 0)
        self._close()


def _is_locked_for_us(fd: int) -> bool:
    """Whether a program that started us holds the lock of a directory: `flock . ralph run`."""
    info = os.fstat(fd)
    place = f"{os.major(info.st_dev):02x}:{os.minor(info.st_dev):02x}:{info.st_ino}"
    try:
        locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    except OSError:
        return False
    holders = {int(fields[4]) for fields in locks if fields[1] == "FLOCK" and fields[5] == place}
    return bool(holders) and holders <= set(_ancestors())


def _ancestors() -> Iterator[int]:
    pid = os.getpid()
    while pid > 1:
        yield pid
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
        except OSError:
            return


def _open_directory(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None


def _locked(fd: int, how: int) -> bool:
    """Takes a lock. False if another process has it. True where a directory cannot have one: the file has."""
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.EBADF, errno.ENOLCK, errno.EINVAL, errno.EOPNOTSUPP):  # NFS, for example
            raise
    return True


def clear_dead(path: Path) -> str | None:
    """Empties the lock file of a process that died and returns what it contained; None if there is no such process."""
    try:
        if not path.lstat().st_size:
            return None
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW)  # it is emptied below, so never through a link
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        holder = _content(fd)
        os.ftruncate(fd, 0)
    except OSError:
        return None
    finally:
        os.close(fd)
    return holder or None


def holder_of(path: Path) -> str:
    """The name that the holder of a lock wrote into it."""
    try:
        with open_regular(path) as file:
            return file.read(200).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _all_dead(holders: str) -> bool:
    """Whether processes are named and none of them is alive."""
    pids = re.findall(r"process (\d+)", holders)
    return bool(pids) and not any(_is_running(pid) for pid in pids)


def _is_running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        pass
    try:
        os.kill(int(pid), 0)
    except OSError as error:
        return error.errno == errno.EPERM
    return not Path("/proc/self").exists()  # without a /proc, the signal has the last say


def _content(fd: int) -> str:
    return os.pread(fd, 200, 0).decode("utf-8", "replace").strip()


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock of a file or a directory exclusively."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        return not _locked(fd, fcntl.LOCK_SH)
    finally:
        os.close(fd)
