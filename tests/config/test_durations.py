"""Durations as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.config.durations import parse_duration, write_duration


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (90, 90),
        (0, 0),
        (2.5, 2.5),
        ("90", 90),
        ("90s", 90),
        ("15m", 900),
        ("1h30m", 5400),
        (" 2H ", 7200),
        ("1d", 86400),
        ("250ms", 0.25),
        ("1h 30 m", 5400),
    ],
)
def test_durations_are_read_as_seconds(written: object, seconds: float) -> None:
    assert parse_duration(written) == seconds


@pytest.mark.parametrize(
    "written", ["", "banana", "15x", "m", "-1", "-5m", "1h banana", "nan", "inf", -1, 10**400, True, None, [1]]
)
def test_anything_else_is_a_value_error(written: object) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_duration(written)


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (900, "15m"),
        (7200, "2h"),
        (5400, "1h30m"),
        (5, "5s"),
        (3661, "1h1m1s"),
        (2.5, "2.5s"),
        (0.25, "0.25s"),
        (0, "0s"),
    ],
)
def test_durations_are_written_as_people_write_them(seconds: float, written: str) -> None:
    assert write_duration(seconds) == written


@given(st.integers(min_value=1, max_value=10**9))
def test_a_written_duration_reads_back_the_same(seconds: int) -> None:
    assert parse_duration(write_duration(seconds)) == seconds


@given(st.one_of(st.text(), st.floats(), st.integers(), st.none(), st.lists(st.integers())))
def test_any_input_gives_a_number_or_a_value_error(value: object) -> None:
    try:
        assert 0 <= parse_duration(value) < float("inf")
    except ValueError:
        pass
