"""A shell that outlives this process for a moment: after a `kill -9` of ralph, it ends the programs that still run.

PR_SET_PDEATHSIG would do the same, but only for a child that calls it before `exec`. A fork of ralph that runs Python
takes ten times as long as starting a program without one. So the programs carry a mark in their environment, by which
the watcher finds them, and what they have forked away.
"""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from ralph.system import children

if TYPE_CHECKING:
    from collections.abc import Mapping

_MARK = "_RALPH_WATCHED"
_SCRIPT = Path(__file__).with_name("watcher.sh")


class _Watcher:
    """Started with the first message. Its environment is empty: it needs nothing of ours."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._token = os.urandom(8).hex()

    def begin(self, env: Mapping[str, str] | None) -> dict[str, str]:
        """To be called before a program is started: the environment for it, by default ours, with the mark."""
        self.tell("+")
        return self.marked(os.environ if env is None else env)

    def marked(self, env: Mapping[str, str]) -> dict[str, str]:
        """An environment with the mark."""
        return {**env, _MARK: self._token}

    def end(self) -> None:
        """The program has ended."""
        self.tell("-")

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
            # By a descriptor, because its name must not be in the command line: `pkill -f ralph` would end it, too.
            script = os.open(_SCRIPT, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # too many open files
            return None
        try:
            process = children.start(
                ["/bin/sh", f"/dev/fd/{script}", self._token],
                pass_fds=(script,),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PATH": "/usr/local/bin:/usr/bin:/bin"},
            )
        except OSError:  # no more processes: the program that we want to start fails next
            return None
        finally:
            os.close(script)
        assert process.stdin is not None
        os.set_blocking(process.stdin.fileno(), False)  # an agent may stop it, and then it no longer reads
        return process


_watcher = _Watcher()
tell, begin, end, marked = _watcher.tell, _watcher.begin, _watcher.end, _watcher.marked
