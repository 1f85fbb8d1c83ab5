"""Checks: which failures count, and what the next prompt says about them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from ralph.loop.verify import Check, blocking, describe, feedback, run_check
from ralph.runners.process import Supervisor
from ralph.runners.stop import StopSwitch

if TYPE_CHECKING:
    from pathlib import Path


def check(command: str, ok: bool, *, before: bool = True, changed: tuple[str, ...] = ()) -> Check:
    return Check(command, ok, "exited with code 1", 0.1, "what it printed", failed_before=not before, changed=changed)


def test_every_failure_counts_unless_those_from_before_the_run_are_excused() -> None:
    checks = [check("a", True, before=False), check("b", False), check("c", False, before=False)]
    assert [c.command for c in blocking(checks, excused=False)] == ["b", "c"]
    assert [c.command for c in blocking(checks, excused=True)] == ["b"]


@pytest.mark.parametrize(
    ("checks", "said"),
    [
        ([check("a", True)], "`a` passes"),
        ([check("a", True), check("b", True), check("c", True)], "`a`, `b` and `c` pass"),
        ([check(f"c{n}", True) for n in range(4)], "4 checks pass"),
        ([check("a", False, before=False)], "`a` still fails, as before the run"),
        ([check("a", True), check("b", False, before=False)], "`a` passes; `b` still fails, as before the run"),
        ([check("cd x\nmake", True)], "`cd x …` passes"),
        (
            [check("make", True, changed=("Makefile",))],
            "`make` passes; Makefile, which `make` uses, has changed since the start of the run",
        ),
        (
            [check("make", True, changed=("Makefile", "a.mk"))],
            "`make` passes; Makefile, a.mk (used by `make`) have changed since the start of the run",
        ),
    ],
)
def test_the_end_of_a_run_says_what_was_seen(checks: list[Check], said: str) -> None:
    assert describe(checks) == said


def test_the_feedback_has_command_reason_and_output() -> None:
    text = feedback([check("make test", False)])
    assert "make test" in text
    assert "exited with code 1" in text
    assert "what it printed" in text
    assert "before" not in text
    assert "it failed before the run too" in feedback([check("make test", False, before=False)])


def test_real_checks(tmp_path: Path, mark: str) -> None:
    (tmp_path / "here").touch()
    with StopSwitch() as stop, Supervisor(stop, tick=0.05) as supervisor:

        def run(command: str, timeout: float | None = None) -> Check:
            return run_check(supervisor, command, str(tmp_path), dict(os.environ), timeout)

        assert run("test -e here").ok
        failed = run("echo out; echo err >&2; exit 4")
        assert (failed.ok, failed.why) == (False, "exited with code 4")
        assert set(failed.tail.split()) == {"out", "err"}
        slow = run("sleep 600", 0.2)
        assert (slow.ok, slow.stopped) == (False, False)
        assert slow.why.startswith("timed out")
        assert not run("kill -9 $$").ok
        assert run("[[ -e here ]]").ok, "checks are bash where there is bash"
