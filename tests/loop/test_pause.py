"""Waiting, with a real clock and a real switch."""

from __future__ import annotations

import os
import signal
import threading
import time

from ralph.loop.pause import hold
from ralph.loop.waits import Wait
from ralph.runners.stop import StopKind, StopSwitch


def took(wait: Wait, stop: StopSwitch) -> tuple[float, list[float]]:
    left: list[float] = []
    began = time.monotonic()
    hold(wait, stop, left.append)
    return time.monotonic() - began, left


def test_a_wait_counts_down() -> None:
    with StopSwitch() as stop:
        seconds, left = took(Wait(1.3, time.time() + 1.3, ""), stop)
    assert seconds >= 1.3
    assert left == sorted(left, reverse=True)
    assert 2 <= len(left) <= 4
    assert left[0] > 1.2


def test_a_signal_ends_a_wait() -> None:
    with StopSwitch() as stop:
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM))
        timer.start()
        seconds, _ = took(Wait(60, time.time() + 60, ""), stop)
        timer.join()
        assert stop.kind is StopKind.TERMINATED
    assert seconds < 5


def test_a_clock_that_jumps_does_not_make_a_wait_longer() -> None:
    """It is set back by a day during the wait, or forward, as after the computer slept."""
    with StopSwitch() as stop:
        assert took(Wait(0.2, time.time() + 86400, ""), stop)[0] < 5
        assert took(Wait(86400, time.time() - 1, ""), stop)[0] < 5
