"""When a command is overdue, computed without a clock."""

from __future__ import annotations

import math

import pytest

from ralph.runners.command import Deadlines, EndKind
from ralph.runners.timers import Timers

START = 100.0


def never() -> bool:
    return False


@pytest.mark.parametrize(
    ("deadlines", "due", "kind"),
    [
        (Deadlines(wall=10), START + 10, EndKind.WALL),
        (Deadlines(idle=5), START + 5, EndKind.IDLE),
        (Deadlines(first_output=3), START + 3, EndKind.IDLE),
        (Deadlines(wall=10, idle=5, first_output=3), START + 3, EndKind.IDLE),
    ],
)
def test_the_earliest_deadline_is_next_and_then_overdue(deadlines: Deadlines, due: float, kind: EndKind) -> None:
    timers = Timers(deadlines, START)
    assert timers.next(None) == due
    assert timers.overdue(due - 0.01, never) is None
    overdue = timers.overdue(due, never)
    assert overdue is not None
    assert overdue[0] is kind


def test_without_deadlines_nothing_is_overdue_except_what_the_caller_knows() -> None:
    timers = Timers(Deadlines(), START)
    assert timers.next(None) == math.inf
    assert timers.next(START + 1) == START + 1
    assert timers.overdue(START + 1e9, never) is None


def test_output_restarts_the_idle_deadline_and_lifts_that_for_the_first_output() -> None:
    timers = Timers(Deadlines(idle=5, first_output=3), START)
    timers.output(START + 2)
    assert timers.next(None) == START + 7
    assert timers.overdue(START + 6.9, never) is None


def test_a_command_may_linger_after_its_final_message_and_its_last_output() -> None:
    timers = Timers(Deadlines(linger=4), START)
    assert timers.overdue(START + 1, lambda: True) is None
    timers.output(START + 2)
    assert timers.next(None) == START + 6
    assert timers.overdue(START + 5.9, lambda: True) is None
    assert timers.overdue(START + 6, lambda: True) == (EndKind.LINGERED, "still running 4 s after its final message")


def test_after_the_exit_output_is_read_until_it_stops_but_not_forever() -> None:
    timers = Timers(Deadlines(idle=60), START)
    timers.exited(START + 10)
    assert timers.has_exited
    assert not timers.drained(START + 10.4)
    assert timers.drained(START + 10.5)
    for tenth in range(100):
        timers.output(START + 10 + tenth / 10)
    assert not timers.drained(START + 14.9)
    assert timers.drained(START + 15)
