"""A sink that collects output, and a supervisor that is checked for processes left behind."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from processes import nothing_left_behind, zombies_of
from ralph.runners.process import Command, Deadlines, Ended, Supervisor
from ralph.runners.stop import StopSwitch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class CollectingSink:
    """Collects the output of a command."""

    def __init__(
        self,
        *,
        done_when: bytes = b"",
        reason: str | None = None,
        reason_at: float | None = None,
        reason_after_output: str | None = None,
        on_output: Callable[[], None] = lambda: None,
    ) -> None:
        """`done_when` is in its final message; `reason` ends it, at `reason_at` or after its first output."""
        self.out = bytearray()
        self.err = bytearray()
        #: what had been printed when the command itself had exited
        self.own: bytes | None = None
        self._done_when = done_when
        self._reason = reason
        self._reason_at = reason_at
        self._reason_after_output = reason_after_output
        self._on_output = on_output

    def stdout(self, chunk: bytes) -> None:
        self.out += chunk
        self._on_output()

    def stderr(self, chunk: bytes) -> None:
        self.err += chunk

    def exited(self) -> None:
        self.own = bytes(self.out)

    def tick(self) -> None:
        pass

    def stop_reason(self) -> str | None:
        if self.out and self._reason_after_output:
            return self._reason_after_output
        return self._reason if self._reason_at is None or time.monotonic() >= self._reason_at else None

    def deadline(self) -> float | None:
        return self._reason_at

    def finished(self) -> bool:
        return bool(self._done_when) and self._done_when in self.out


class Runner:
    """A supervisor and its stop switch. `run` returns how the command ended; `sink` has its output."""

    def __init__(self, supervisor: Supervisor, stop: StopSwitch, cwd: Path) -> None:
        self.supervisor = supervisor
        self.stop = stop
        self.cwd = cwd
        self.sink = CollectingSink()

    def run(
        self,
        *argv: str,
        stdin: bytes | None = None,
        pty: bool = False,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        sink: CollectingSink | None = None,
        **deadlines: float,
    ) -> Ended:
        self.sink = sink or CollectingSink()
        command = Command(
            list(argv), dict(os.environ) if env is None else env, cwd or str(self.cwd), stdin=stdin, pty=pty
        )
        limits = {"wall": 60.0, "grace": 0.3} | deadlines
        return self.supervisor.run(command, self.sink, Deadlines(**limits))

    def bash(self, script: str, **how: object) -> Ended:
        return self.run("bash", "-c", script, **how)  # type: ignore[arg-type]


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with nothing_left_behind(monkeypatch) as value:
        yield value


@pytest.fixture
def runner(mark: str, tmp_path: Path) -> Iterator[Runner]:
    before = zombies_of(os.getpid())  # of a ralph that another test has killed
    with StopSwitch() as stop, Supervisor(stop, tick=0.05) as supervisor:
        yield Runner(supervisor, stop, tmp_path)
    # The supervisor makes this process a subreaper: it must have waited for the orphans it got.
    assert set(zombies_of(os.getpid())) <= set(before)
