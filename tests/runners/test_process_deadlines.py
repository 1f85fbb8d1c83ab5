"""Deadlines act on time, even if ticks are slow."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from ralph.runners.process import EndKind, Supervisor
from ralph.runners.stop import StopSwitch
from runners.conftest import CollectingSink, Runner

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: So slow that a test fails if anything waits for it.
TICK = 30.0
SOON = 10.0


@pytest.fixture
def slow(mark: str, tmp_path: Path) -> Iterator[Runner]:
    with StopSwitch() as stop, Supervisor(stop, tick=TICK) as supervisor:
        yield Runner(supervisor, stop, tmp_path)


@pytest.mark.parametrize(
    ("script", "deadlines", "kind"),
    [
        ("echo x; exec sleep 60", {"idle": 0.3}, EndKind.IDLE),
        ("exec sleep 60", {"wall": 0.3}, EndKind.WALL),
        ("exec sleep 60", {"first_output": 0.3}, EndKind.IDLE),
        ("echo done; exec sleep 60", {"linger": 0.3}, EndKind.LINGERED),
        ("sleep 60 & echo x", {}, EndKind.EXITED),  # the stray holds the pipe
    ],
)
def test_a_deadline_does_not_wait_for_the_tick(
    slow: Runner, script: str, deadlines: dict[str, float], kind: EndKind
) -> None:
    ended = slow.bash(script, sink=CollectingSink(done_when=b"done"), **deadlines)
    assert ended.kind is kind
    assert 0.3 <= ended.seconds < SOON


def test_the_deadline_of_the_sink_does_not_wait_for_the_tick(slow: Runner) -> None:
    due = time.monotonic() + 0.3
    ended = slow.bash("exec sleep 60", sink=CollectingSink(reason="the time is over", reason_at=due))
    assert (ended.kind, ended.reason) == (EndKind.STOPPED, "the time is over")
    assert time.monotonic() >= due
    assert ended.seconds < SOON


def test_waiting_for_a_deadline_uses_no_processor_time(slow: Runner) -> None:
    before = time.process_time()
    ended = slow.bash("echo x; exec sleep 60", idle=2.0, linger=50.0, first_output=50.0)
    assert ended.kind is EndKind.IDLE
    assert time.process_time() - before < 1.0
