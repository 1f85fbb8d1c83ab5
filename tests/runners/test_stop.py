"""Ctrl-C and TERM as values."""

from __future__ import annotations

import os
import select
import signal

import pytest

from ralph.runners.stop import StopKind, StopSwitch


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (signal.SIGINT, StopKind.INTERRUPTED),
        (signal.SIGTERM, StopKind.TERMINATED),
        (signal.SIGHUP, StopKind.TERMINATED),
    ],
)
def test_a_signal_is_recorded_and_ends_a_select(number: signal.Signals, kind: StopKind) -> None:
    with StopSwitch() as stop:
        assert stop.kind is None
        os.kill(os.getpid(), number)
        assert select.select([stop.fd], [], [], 10)[0]
        assert (stop.kind, stop.urgent) == (kind, False)


def test_a_second_signal_is_urgent_and_keeps_the_first_kind() -> None:
    with StopSwitch() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        assert (stop.kind, stop.urgent) == (StopKind.TERMINATED, True)


def test_a_wait_is_cut_short_by_a_signal() -> None:
    with StopSwitch() as stop:
        signal.setitimer(signal.ITIMER_REAL, 0)  # none is pending
        previous = signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            assert stop.wait(600) is True
        finally:
            signal.signal(signal.SIGALRM, previous)


def test_a_wait_without_a_signal_ends_on_time() -> None:
    with StopSwitch() as stop:
        assert stop.wait(0.01) is False


def test_signal_handlers_are_restored() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGHUP)
    descriptors = set(os.listdir("/proc/self/fd"))
    with StopSwitch():
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert (
        signal.getsignal(signal.SIGINT),
        signal.getsignal(signal.SIGTERM),
        signal.getsignal(signal.SIGHUP),
    ) == before
    assert len(os.listdir("/proc/self/fd")) == len(descriptors)


def test_an_ignored_signal_stays_ignored() -> None:
    """`nohup ralph run &` continues when the terminal is closed."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopSwitch() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert stop.wait(0.01) is False
    finally:
        signal.signal(signal.SIGHUP, before)
