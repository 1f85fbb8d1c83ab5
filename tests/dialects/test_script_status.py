"""The notices about the status that host.sh leaves after an iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ralph.dialects.script.status import Status, context_notice

if TYPE_CHECKING:
    from pathlib import Path


def notices(**facts: str) -> list[object]:
    return [event.meta["text"] for event in context_notice(Status(facts))]


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({"used": "1500", "max": "10000", "percent": "15"}, "context: 1,500 of 10,000 tokens (15 %)"),
        ({"used": "9000", "max": "10000"}, "context: 9,000 of 10,000 tokens (90 %), nearly full"),
        ({"percent": "45.7%"}, "context: 45 %"),
        ({"percent": "60", "warn": "50"}, "context: 60 %, nearly full"),
        ({"used": "1500"}, "context: 1,500 tokens"),
        ({"used": "1500", "max": "0"}, "context: 1,500 tokens"),
    ],
)
def test_the_context_size_is_reported_as_far_as_it_is_known(facts: dict[str, str], text: str) -> None:
    assert notices(**facts) == [text]


@pytest.mark.parametrize(
    "facts", [{}, {"used": "", "percent": ""}, {"percent": "n/a"}, {"used": "-3"}, {"used": "1e9"}]
)
def test_a_value_that_is_not_a_number_is_not_reported(facts: dict[str, str]) -> None:
    assert notices(**facts) == []


def test_a_missing_or_truncated_status_file_is_read_as_far_as_possible(tmp_path: Path) -> None:
    status = Status.read(tmp_path / "script.status")
    assert not status.extracted
    (tmp_path / "script.status").write_bytes(b"extracted\0000\0used\x0012\0torn")
    assert Status.read(tmp_path / "script.status").number("used") == 12
