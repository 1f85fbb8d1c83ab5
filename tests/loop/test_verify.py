"""Checks: which failures count, and what the next prompt says about them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ralph.loop.verify import Check, blocking, feedback, run_check
from ralph.runners.process import Supervisor
from ralph.runners.stop import StopSwitch

if TYPE_CHECKING:
    from pathlib import Path


def check(command: str, ok: bool) -> Check:
    return Check(command, ok, "exited with code 1", 0.1, "what it printed")


def test_only_new_failures_count() -> None:
    checks = [check("a", True), check("b", False), check("c", False)]
    baseline = {"a": True, "b": True, "c": False}
    assert [c.command for c in blocking(checks, baseline, strict=False)] == ["b"]
    assert [c.command for c in blocking(checks, baseline, strict=True)] == ["b", "c"]


def test_a_check_without_a_baseline_counts() -> None:
    assert blocking([check("a", False)], {}, strict=False)


def test_the_feedback_has_command_reason_and_output() -> None:
    text = feedback([check("make test", False)])
    assert "make test" in text
    assert "exited with code 1" in text
    assert "what it printed" in text


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
