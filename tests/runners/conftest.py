"""A sink that collects, and a supervisor whose every run is checked for what it leaves behind."""

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


class Collect:
    """Takes the bytes as they come."""

    def __init__(self) -> None:
        self.out = bytearray()
        self.err = bytearray()
        self.done_when = b""
        self.reason: str | None = None
        self.reason_at: float | None = None
        self.on_output: Callable[[], None] = lambda: None

    def stdout(self, chunk: bytes) -> None:
        self.out += chunk
        self.on_output()

    def stderr(self, chunk: bytes) -> None:
        self.err += chunk

    def tick(self) -> None:
        pass

    def stop_reason(self) -> str | None:
        return self.reason if self.reason_at is None or time.monotonic() >= self.reason_at else None

    def deadline(self) -> float | None:
        return self.reason_at

    def finished(self) -> bool:
        return bool(self.done_when) and self.done_when in self.out


class Runner:
    """One supervisor and its stop switch; `run` gives how the command ended, `sink` what it printed."""

    def __init__(self, supervisor: Supervisor, stop: StopSwitch, cwd: Path) -> None:
        self.supervisor = supervisor
        self.stop = stop
        self.cwd = cwd
        self.sink = Collect()

    def run(
        self,
        *argv: str,
        stdin: bytes | None = None,
        pty: bool = False,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        sink: Collect | None = None,
        **deadlines: float,
    ) -> Ended:
        self.sink = sink or Collect()
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
    with StopSwitch() as stop, Supervisor(stop, tick=0.05) as supervisor:
        yield Runner(supervisor, stop, tmp_path)
    # The supervisor makes this process a subreaper; what came to it was waited for.
    assert zombies_of(os.getpid()) == []
