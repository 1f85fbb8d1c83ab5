"""Counts have the right plural."""

from __future__ import annotations

import pytest

from ralph.system.text import count


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0 lines"), (1, "1 line"), (2, "2 lines"), (1234, "1,234 lines"), (1_000_000, "1,000,000 lines")],
)
def test_one_is_singular_and_thousands_are_separated(number: int, shown: str) -> None:
    assert count(number, "line") == shown


def test_a_plural_without_s_can_be_given() -> None:
    assert [count(number, "entry", "entries") for number in (1, 2)] == ["1 entry", "2 entries"]
