"""Which turn of a script is played follows from the number of tool results alone."""

from __future__ import annotations

import pytest

from ralph.testing.model.scenarios import MARKER, SCENARIOS
from ralph.testing.model.script import Scenario, Shell, Turn


def test_each_result_brings_the_next_turn_and_the_last_one_stays() -> None:
    success = SCENARIOS["success"]
    assert [success.step(results) for results in range(5)] == [0, 1, 2, 2, 2]


def test_a_turn_with_two_calls_is_over_when_both_results_are_there() -> None:
    two = Scenario("", (Turn(acts=(Shell("a"), Shell("b"))), Turn("end")))
    assert [two.step(results) for results in range(3)] == [0, 0, 1]


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_script_ends_with_a_turn_without_calls(name: str) -> None:
    *_, last = SCENARIOS[name].turns
    assert last.acts == ()


@pytest.mark.parametrize("name", sorted(SCENARIOS.keys() - {"quote", "empty"}))
def test_every_script_that_finishes_has_the_marker_alone_on_its_last_line(name: str) -> None:
    assert SCENARIOS[name].turns[-1].text.rstrip("\n").split("\n")[-1] == MARKER


def test_quote_has_the_marker_everywhere_but_alone_on_a_line_of_what_it_says() -> None:
    first, last = SCENARIOS["quote"].turns
    (act,) = first.acts
    assert isinstance(act, Shell)
    assert MARKER in first.thinking
    assert MARKER in act.command
    assert MARKER in last.text
    assert MARKER not in last.text.split("\n")
