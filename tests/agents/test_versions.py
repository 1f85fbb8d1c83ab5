"""Versions, and how they stand to those that were tried."""

from __future__ import annotations

import pytest

from ralph.agents.versions import VersionStatus, below, in_range, version_status


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
        ("2.1.0", VersionStatus.TESTED),
        ("2.1.99", VersionStatus.TESTED),
        ("2.1", VersionStatus.TESTED),
        ("4", VersionStatus.TESTED),
        ("2.0.9", VersionStatus.OLDER),
        ("2.10.0", VersionStatus.BETWEEN),
        ("4.1", VersionStatus.NEWER),
        ("1.4", VersionStatus.TOO_OLD),
        ("1.5", VersionStatus.OLDER),
        (None, VersionStatus.UNKNOWN),
        ("nightly", VersionStatus.UNKNOWN),
    ],
)
def test_standing(version: str | None, expected: VersionStatus) -> None:
    assert version_status(version, ("2.1.7", "4.0.1"), "1.5") is expected


def test_nothing_tested_is_nothing_known() -> None:
    assert version_status("1.0", ()) is VersionStatus.UNKNOWN


def test_without_a_minimum_nothing_is_below() -> None:
    assert not below("0.0.1", None)
    assert below("1.0.127", "1.0.128")
