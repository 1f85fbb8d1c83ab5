"""A run that ends while the agent's command is running leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from processes import eventually, marked, nothing_left_behind
from ralph.testing.model.scenarios import LONG_COMMAND

if TYPE_CHECKING:
    from conftest import Bench

pytestmark = pytest.mark.realcli


@pytest.mark.parametrize(("sign", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130)], ids=["SIGKILL", "SIGINT"])
def test_nothing_is_left_of_an_agent_in_the_middle_of_a_command(
    bench: Bench, sign: signal.Signals, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bench.model("longtool") as model, nothing_left_behind(monkeypatch) as mark:
        ralph = subprocess.Popen(
            bench.command("1"),
            cwd=bench.workdir,
            env=bench.environment(model),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            working = eventually(lambda: any(c.startswith(LONG_COMMAND) for c in marked(mark).values()), 60)
            assert working, f"the command never started: {marked(mark)}"
            os.kill(ralph.pid, sign)
            assert ralph.wait(30) == code
        finally:
            ralph.kill()
            ralph.wait()
