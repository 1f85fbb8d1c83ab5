"""One run a directory. The lock is the kernel's, so that of a dead process is never in the way."""

from __future__ import annotations

import fcntl
import os
import time
from typing import TYPE_CHECKING, Self

from ralph.errors import RunError, UsageError

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType


class RunLock:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1

    def __enter__(self) -> Self:
        try:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise RunError(f"the journal cannot be written: {self._path}: {error.strerror}") from None
        if not self._take():
            holder = os.pread(self._fd, 200, 0).decode("utf-8", "replace").strip()
            os.close(self._fd)
            raise UsageError(
                f"a run is already going in this directory ({holder or 'its process is not known'}).\n"
                "  Wait for it or stop it; `ralph tail -f` shows what it is doing."
            )
        return self

    def _take(self) -> bool:
        """Tries for a moment: somebody who only looks whether it is held holds it for an instant, too."""
        for attempt in range(20):
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.001 * attempt)
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
        os.close(self._fd)


def is_locked(path: Path) -> bool:
    """Whether somebody holds the lock now."""
    try:
        fd = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
