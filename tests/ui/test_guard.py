"""A screen that fails during a run."""

from __future__ import annotations

import signal

import pytest

from ralph.runners.stop import StopKind, StopSwitch
from ralph.ui.guard import GuardedScreen
from ralph.ui.machine import JsonScreen


class FailingScreen(JsonScreen):
    """Fails as every screen does once its terminal is closed."""

    def __init__(self) -> None:
        pass

    def show(self, events: object, lines: bytes) -> None:
        raise OSError(5, "Input/output error")


def test_a_failing_screen_ends_the_run_like_sigterm() -> None:
    with StopSwitch() as stop:
        GuardedScreen(FailingScreen(), lambda: stop.kind is not None).show([], b"")
        assert (stop.kind, stop.urgent) == (StopKind.TERMINATED, False)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_a_run_that_is_ending_already_keeps_its_grace_period(number: signal.Signals) -> None:
    with StopSwitch() as stop:
        screen = GuardedScreen(FailingScreen(), lambda: stop.kind is not None)
        signal.raise_signal(number)
        screen.show([], b"")
        assert stop.kind is not None
        assert not stop.urgent
