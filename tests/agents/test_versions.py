"""Versions, and how they stand to those that were tried."""

from __future__ import annotations

import pytest

from ralph.agents.versions import Standing, below, in_range, standing


@pytest.mark.parametrize(
    ("version", "expression", "holds"),
    [
        ("1.2.3", "", True),
        ("1.2.3", ">=1.2,<2", True),
        ("2.0", ">=1.2,<2", False),
        ("1.2", ">=1.2.0", True),
        ("0.166.0", ">=0.50", True),
        ("0.9", ">=0.50", False),
    ],
)
def test_ranges(version: str, expression: str, holds: bool) -> None:
    assert in_range(version, expression) is holds


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("2.1.0", Standing.TESTED),
        ("2.1.99", Standing.TESTED),
        ("2.1", Standing.TESTED),
        ("4", Standing.TESTED),
        ("2.0.9", Standing.OLDER),
        ("2.10.0", Standing.BETWEEN),
        ("4.1", Standing.NEWER),
        ("1.4", Standing.TOO_OLD),
        ("1.5", Standing.OLDER),
        (None, Standing.UNKNOWN),
        ("nightly", Standing.UNKNOWN),
    ],
)
def test_standing(version: str | None, expected: Standing) -> None:
    assert standing(version, ("2.1.7", "4.0.1"), "1.5") is expected


def test_nothing_tested_is_nothing_known() -> None:
    assert standing("1.0", ()) is Standing.UNKNOWN


def test_without_a_minimum_nothing_is_below() -> None:
    assert not below("0.0.1", None)
    assert below("1.0.127", "1.0.128")
