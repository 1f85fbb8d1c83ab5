"""Which turn of a script is played depends only on the number of tool results."""

from __future__ import annotations

import pytest

from ralph.testing.model.scenarios import MARKER, SCENARIOS
from ralph.testing.model.script import Scenario, Shell, Turn


def test_each_result_leads_to_the_next_turn_up_to_the_last() -> None:
    success = SCENARIOS["success"]
    assert [success.step(results) for results in range(5)] == [0, 1, 2, 2, 2]


def test_a_turn_with_two_calls_needs_both_results() -> None:
    two = Scenario("", (Turn(acts=(Shell("a"), Shell("b"))), Turn("end")))
    assert [two.step(results) for results in range(3)] == [0, 0, 1]


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_script_ends_with_a_turn_without_calls(name: str) -> None:
    *_, last = SCENARIOS[name].turns
    assert last.acts == ()


@pytest.mark.parametrize("name", sorted(SCENARIOS.keys() - {"quote", "empty"}))
def test_every_script_that_finishes_has_the_marker_alone_on_its_last_line(name: str) -> None:
    assert SCENARIOS[name].turns[-1].text.rstrip("\n").split("\n")[-1] == MARKER


def test_quote_never_has_the_marker_alone_on_a_line_of_its_text() -> None:
    first, last = SCENARIOS["quote"].turns
    (act,) = first.acts
    assert isinstance(act, Shell)
    assert MARKER in first.thinking
    assert MARKER in act.command
    assert MARKER in last.text
    assert MARKER not in last.text.split("\n")
