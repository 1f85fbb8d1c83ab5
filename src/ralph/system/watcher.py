"""A shell that outlives this process for a moment: after a `kill -9` of ralph, it ends the programs that still run.

PR_SET_PDEATHSIG would do the same, but only for a child that calls it before `exec`. A fork of ralph that runs Python
takes ten times as long as starting a program without one.
"""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

from ralph.system import children

_SCRIPT = Path(__file__).with_name("watcher.sh")


class _Watcher:
    """Started with the first message. Its environment is empty: it needs nothing of ours."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def tell(self, line: str) -> None:
        """Sends a message. A watcher that was killed is replaced, but the new one knows only what follows."""
        data = f"{line}\n".encode("utf-8", "surrogateescape")
        with self._lock:
            if self._process is None or not self._sent(self._process, data):
                self._process = self._started()
                if self._process is not None:
                    self._sent(self._process, data)

    def _sent(self, process: subprocess.Popen[bytes], data: bytes) -> bool:
        assert process.stdin is not None
        try:
            os.write(process.stdin.fileno(), data)
        except OSError:
            process.stdin.close()
            children.finish(process)
            return False
        return True

    def _started(self) -> subprocess.Popen[bytes] | None:
        try:
            return children.start(
                ["/bin/sh", str(_SCRIPT)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PATH": "/usr/local/bin:/usr/bin:/bin"},
            )
        except OSError:  # no more processes: the program that we want to start fails next
            return None


tell = _Watcher().tell
