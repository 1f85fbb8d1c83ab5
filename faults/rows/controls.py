"""Stopping, pausing and resuming from another terminal, at bad moments."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

from faults import tree
from faults.case import fault

if TYPE_CHECKING:
    from faults.place import Place

_DEAF = "signal.signal(signal.SIGTERM, signal.SIG_IGN); ready(); work()"


@fault("`ralph stop --now`, the agent ignores TERM", "stop: 0; 130 stopped · interrupted")
def stop_now(at: Place) -> None:
    running = at.run(at.agent(_DEAF))
    at.ready()
    at.check(f"stop: {at.start('stop', '--now').ended()}", True)
    at.see(running.ended())


@fault("SIGTERM while it is paused", "143 terminated · ok; at once")
def terminated_while_paused(at: Place) -> None:
    running = at.run(at.agent("say('here'); ready(); time.sleep(1.5)"))
    at.ready()
    at.start("pause").ended()
    at.until(lambda: b'"kind":"pause"' in _events(at), "the pause")
    began = time.monotonic()
    running.send(signal.SIGTERM)
    code = running.ended()
    took = time.monotonic() - began
    at.see(code)
    at.check("at once", took < 3, f"{took:.1f} s")


@fault("SIGKILL of ralph, then `ralph run --resume`", "-9 no end · ok; 0 complete · ok crashed ok")
def killed_and_resumed(at: Place) -> None:
    agent = at.agent(
        "say(f'iteration {ITERATION}')\n"
        "if ITERATION == 2: ready(); work()\n"
        "if ITERATION == 3: say('<promise>COMPLETE</promise>')"
    )
    running = at.run(agent)
    at.ready()
    time.sleep(0.3)
    running.send(signal.SIGKILL)
    code = running.ended()
    tree.settle(10)
    at.see(code, torn=True)
    at.see(at.start("run", "--ui", "plain", "--resume").ended())


@fault("`ralph stop` of a run that was killed", "-9 no end · none; stop: 64")
def stop_of_the_dead(at: Place) -> None:
    running = at.run(at.agent("ready(); work()"))
    at.ready()
    running.send(signal.SIGKILL)
    code = running.ended()
    tree.settle(10)
    at.see(code, torn=True)
    at.check(f"stop: {at.start('stop').ended()}", True)
    at.no_bug()


def _events(at: Place) -> bytes:
    return b"".join(file.read_bytes() for file in at.repo.glob(".ralph/runs/*/events.jsonl"))
