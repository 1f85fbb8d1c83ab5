"""How a crash of the coverage-guided engine is reported, and what the table shows."""

from __future__ import annotations

import pytest
from fuzz.checks import require
from fuzz.guided import reporting
from fuzz.result import Result, render


def test_an_exception_of_a_target_is_reported_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AssertionError):
        reporting(lambda data: require(False, "a call ends\nthat never began", data))(b"x")
    assert "\nfuzz raised fuzz.checks.ViolationError: a call ends ⏎ that never began: b'x'\n" in capsys.readouterr().err


def test_the_table_shows_the_error_of_a_crash() -> None:
    table = render([Result("claude", "atheris", 10, 1.0, "", [b"x"], "ViolationError: a call ends that never began")])
    assert table.endswith("1: ViolationError: a call ends that never began")
