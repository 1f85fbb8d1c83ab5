"""What the coverage-guided engine's process tells of a crash, and what of it the table shows."""

from __future__ import annotations

import pytest
from fuzz.checks import require
from fuzz.guided import telling
from fuzz.result import Result, render


def test_what_a_target_raised_is_told_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AssertionError):
        telling(lambda data: require(False, "a call ends\nthat never began", data))(b"x")
    assert "\nfuzz raised fuzz.checks.ViolationError: a call ends ⏎ that never began: b'x'\n" in capsys.readouterr().err


def test_the_table_shows_what_a_crash_said() -> None:
    table = render([Result("claude", "atheris", 10, 1.0, "", [b"x"], "ViolationError: a call ends that never began")])
    assert table.endswith("1: ViolationError: a call ends that never began")
