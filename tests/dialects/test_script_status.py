"""What a host script says about an iteration, told to the user."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ralph.dialects.script.status import Status, context_notice

if TYPE_CHECKING:
    from pathlib import Path


def told(**facts: str) -> list[object]:
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
def test_the_context_is_told_as_far_as_it_is_known(facts: dict[str, str], text: str) -> None:
    assert told(**facts) == [text]


@pytest.mark.parametrize(
    "facts", [{}, {"used": "", "percent": ""}, {"percent": "n/a"}, {"used": "-3"}, {"used": "1e9"}]
)
def test_what_is_no_number_is_not_told(facts: dict[str, str]) -> None:
    assert told(**facts) == []


def test_an_iteration_that_was_killed_says_nothing(tmp_path: Path) -> None:
    status = Status.read(tmp_path / "script.status")
    assert not status.extracted
    (tmp_path / "script.status").write_bytes(b"extracted\0000\0used\x0012\0torn")
    assert Status.read(tmp_path / "script.status").number("used") == 12
