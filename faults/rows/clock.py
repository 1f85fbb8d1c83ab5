"""The clock is set while ralph runs: only `time.time` of the ralph process, not the clock of the machine."""

from __future__ import annotations

import json
import subprocess
import time
from typing import TYPE_CHECKING

from faults.case import fault
from faults.place import ralph

if TYPE_CHECKING:
    from faults.place import Place

_SITE = """
import os, time
_real = time.time
def _shift():
    try:
        with open(os.environ["FAULT_CLOCK"]) as file:
            return float(file.read() or 0)
    except (OSError, ValueError):
        return 0.0
time.time = lambda: _real() + _shift()
time.time_ns = lambda: int(time.time() * 1e9)
"""
_DAY = 86400.0


def _adjustable(at: Place) -> None:
    folder = at.root / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_SITE)
    at.env["PYTHONPATH"] = str(folder)
    at.env["FAULT_CLOCK"] = str(at.root / "clock")


def _set(at: Place, seconds: float) -> None:
    new = at.root / "clock.new"
    new.write_text(str(seconds))
    new.rename(at.root / "clock")


def _jump_in_iteration(at: Place, seconds: float) -> None:
    _adjustable(at)
    agent = "say('here'); ready()\nif ITERATION == 1: work(3)"
    running = at.run(at.agent(agent), "2", "--idle-timeout", "60", "--wall-timeout", "60", "--max-runtime", "1h")
    at.ready()
    time.sleep(0.3)
    _set(at, seconds)
    listed = subprocess.run(ralph("runs", "--json"), cwd=at.repo, env=at.env, capture_output=True, timeout=30)
    at.check("no negative time", json.loads(listed.stdout)["seconds"] >= 0, listed.stdout)
    record = at.see(running.ended())
    took = [m["seconds"] for m in [*record.metas("iteration_end"), *record.metas("run_end")]]
    at.check("correct durations", 3 <= took[0] < 10 and 0 <= took[1] < 5 and took[2] < 15, took)


@fault("clock set forward a day in an iteration", "no negative time; 2 limit · ok×2; correct durations")
def forward(at: Place) -> None:
    _jump_in_iteration(at, _DAY)


@fault("clock set back a day in an iteration", "no negative time; 2 limit · ok×2; correct durations")
def back(at: Place) -> None:
    _jump_in_iteration(at, -_DAY)


def _limited(field: str) -> str:
    return (
        "if ITERATION == 1:\n"
        f"    after = {{'kind': 'rate_limit', {field}}}\n"
        "    import json\n"
        "    say('@@RALPH@@ ' + json.dumps({'type': 'meta', 'meta': after}))\n"
        "    say('@@RALPH@@ ' + json.dumps({'type': 'meta', 'meta':"
        " {'kind': 'error', 'class': 'rate_limited', 'message': '429'}}))\n"
        "    ready(); sys.exit(1)\n"
        """say('@@RALPH@@ {"type":"text","tag":"AI","text":"<promise>COMPLETE</promise>"}')"""
    )


def _jump_in_wait(at: Place, seconds: float, field: str, least: float, most: float) -> None:
    _adjustable(at)
    running = at.run(at.agent(_limited(field)), "--transcript", "rtf1")
    at.ready()
    at.until(lambda: b'"kind":"wait"' in _events(at), "the wait")
    began = time.monotonic()
    _set(at, seconds)
    code = running.ended()
    took = time.monotonic() - began
    at.see(code)
    at.check("waited the right time", least <= took <= most, f"{took:.1f} s")


def _events(at: Place) -> bytes:
    return b"".join(file.read_bytes() for file in at.repo.glob(".ralph/runs/*/events.jsonl"))


@fault("clock set back an hour in a wait of 3 s", "0 complete · rate_limited ok; waited the right time")
def back_in_wait(at: Place) -> None:
    _jump_in_wait(at, -3600, "'retry_after': 3", 3, 9)


@fault("clock set forward an hour in a wait for a time", "0 complete · rate_limited ok; waited the right time")
def forward_in_wait(at: Place) -> None:
    # The provider named a time, and by the clock, which is correct now, that time has come.
    _jump_in_wait(at, 3600, "'resets_at': time.time() + 600", 0, 6)


@fault("clock set back a day between two runs", "2 limit · ok; newest shown")
def back_between(at: Place) -> None:
    _adjustable(at)
    at.run(at.agent("say('the first run')"), "1").ended()
    for file in at.side.glob("*.std*"):
        file.unlink()
    _set(at, -_DAY)
    at.see(at.run(at.agent("say('the second run')", "second"), "1").ended())
    shown = subprocess.run(ralph("show"), cwd=at.repo, env=at.env, capture_output=True, timeout=30).stdout
    at.check("newest shown", b"the second run" in shown and b"the first run" not in shown, shown[-200:])
