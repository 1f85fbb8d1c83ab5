"""What a real agent uses is counted while it works."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from conftest import Loop
from processes import eventually, marked, nothing_left_behind
from ralph.testing.model.scenarios import LONG_COMMAND, SCENARIOS
from ralph.testing.model.script import Scenario, Shell, Turn, usage_of

if TYPE_CHECKING:
    from conftest import Bench

pytestmark = pytest.mark.realcli

_TURNS = 12
_SLOW = Scenario(
    "a second of work after each answer",
    (
        *(Turn(f"Step {n}.", acts=(Shell(f"timeout 1 tail -f /dev/null; echo {n}"),)) for n in range(_TURNS)),
        Turn("Done."),
    ),
)


@pytest.fixture
def counting(bench: Bench) -> Bench:
    if bench.real.lacks & {"usage", "live usage"}:
        pytest.skip("it reports its usage only when it ends, if at all")
    return bench


def test_a_token_ceiling_ends_the_iteration_that_passes_it(counting: Bench) -> None:
    loop = counting.run(_SLOW, "--max-tokens", "4000", "3")
    assert loop.code == 2, loop.shown
    (iteration,) = loop.iterations
    assert iteration["outcome"] == "interrupted", loop.shown
    assert iteration["usage"]["at_least"] is True
    assert 3 <= turns_of(loop) < _TURNS
    check(iteration["usage"], loop)
    assert "tokens were used (limit 4,000)" in loop.shown


@pytest.mark.parametrize(("sign", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130)], ids=["SIGKILL", "SIGINT"])
def test_a_kill_in_the_middle_of_an_iteration_keeps_the_usage(
    counting: Bench, sign: signal.Signals, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "usage before tools" in counting.real.lacks:
        pytest.skip("it has not reported anything while its first tool runs")
    with counting.model("longtool") as model, nothing_left_behind(monkeypatch) as mark:
        environment = counting.environment(model)
        quiet: dict[str, Any] = {"cwd": counting.workdir, "env": environment, "stdin": subprocess.DEVNULL}
        ralph = subprocess.Popen(counting.command("1"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **quiet)
        try:
            working = eventually(lambda: any(c.startswith(LONG_COMMAND) for c in marked(mark).values()), 60)
            assert working, f"the command never started: {marked(mark)}"
            os.kill(ralph.pid, sign)
            assert ralph.wait(30) == code
        finally:
            ralph.kill()
            ralph.wait()
        # Whoever resumes it has this many tokens less.
        spent = usage_of(0).input
        resumed = subprocess.run(
            counting.command("--resume", "--max-tokens", str(spent)),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            **quiet,
        )
        loop = Loop(counting.workdir, resumed.returncode, resumed.stdout + resumed.stderr, model.requests)
    assert loop.code == 2, loop.shown
    (iteration,) = loop.iterations
    check(iteration["usage"], loop)
    # Some CLIs do not mind that their command was killed: they finish in the time that they get to end.
    finished = turns_of(loop) == len(SCENARIOS["longtool"].turns)
    assert iteration["usage"].get("at_least", False) is not finished
    assert f"{'' if finished else '≥ '}{iteration['usage']['prompt_tokens']:,} in" in loop.shown


def turns_of(loop: Loop) -> int:
    return len([request for request in loop.requests if request.main])


def check(usage: dict[str, Any], loop: Loop) -> None:
    """The usage is that of the model's answers; the last one may have been cut off."""
    prompts = [usage_of(step).input for step in range(turns_of(loop))]
    assert usage["prompt_tokens"] in (sum(prompts), sum(prompts[:-1])), loop.shown
