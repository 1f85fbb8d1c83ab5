"""One run a directory, one process a run. A lock is the kernel's, so that of a dead process is never in the way.

A process that ends in order empties its lock file. One that is neither held nor empty belonged to a process that died.
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
    from collections.abc import Callable
    from types import TracebackType


#: How long it takes at most to end what a dead process has left.
_ENDING = 15.0


class RunLock:
    """`shared`: for those who share it, several may hold it. `holders` tells who has it, if its file does not."""

    def __init__(self, path: Path, *, shared: bool = False, holders: Callable[[], str] = lambda: "") -> None:
        self._path = path
        self._how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        self._holders = holders
        self._fd = -1

    def __enter__(self) -> Self:
        try:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise RunError(f"the journal cannot be written: {self._path}: {error.strerror}") from None
        if not self._take():
            holder = self._holders() or _said(self._fd)
            os.close(self._fd)
            raise UsageError(
                f"a run is already going in this directory ({holder or 'its process is not known'}).\n"
                "  Wait for it or stop it (`ralph stop`); `ralph tail -f` shows what it is doing.\n"
                "  Runs that do not get in each other's way can go on side by side: --exclusive=no, for all of them."
            )
        return self

    def fileno(self) -> int:
        return self._fd

    def _take(self) -> bool:
        """Tries for a moment: somebody who only looks whether it is held holds it for an instant, too.

        If its process is dead, what that has left is being ended just now: this takes a grace.
        """
        attempt = 0
        end = time.monotonic() + _ENDING
        while attempt < 20 or (_left_by_the_dead(_said(self._fd) or self._holders()) and time.monotonic() < end):
            try:
                fcntl.flock(self._fd, self._how | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(min(0.001 * attempt, 0.1))
                attempt += 1
            else:
                return True
        return False

    def claim(self, run_id: str) -> None:
        """Says who holds it, for the one who comes second."""
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"run {run_id}, process {os.getpid()}\n".encode(), 0)
        except OSError as error:
            raise RunError(f"the journal cannot be written: {self._path}: {error.strerror}") from None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._how == fcntl.LOCK_EX:  # nobody else holds it: an end in order leaves no name
            with suppress(OSError):
                os.ftruncate(self._fd, 0)
        os.close(self._fd)


def take_over(path: Path) -> str | None:
    """What a process that died left in its lock file, which is emptied; None if there is nothing, or it is alive."""
    try:
        if not path.lstat().st_size:
            return None
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW)  # it is emptied below: not what a link names
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        said = _said(fd)
        os.ftruncate(fd, 0)
    except OSError:
        return None
    finally:
        os.close(fd)
    return said or None


def holder_of(path: Path) -> str:
    """What the holder of a lock wrote into it."""
    try:
        with open_regular(path) as file:
            return file.read(200).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _left_by_the_dead(said: str) -> bool:
    """Whether none of the processes that are named lives any more."""
    named = re.findall(r"process (\d+)", said)
    return bool(named) and not any(_lives(pid) for pid in named)


def _lives(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        pass
    try:
        os.kill(int(pid), 0)
    except OSError as error:
        return error.errno == errno.EPERM
    return not Path("/proc/self").exists()  # where there is no /proc, this is the answer


def _said(fd: int) -> str:
    return os.pread(fd, 200, 0).decode("utf-8", "replace").strip()


def is_locked(path: Path) -> bool:
    """Whether somebody holds the lock for himself now."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
