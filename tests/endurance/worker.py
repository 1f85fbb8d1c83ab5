"""The agent of a night: `worker.py LEDGER SEED LAST`. The seed decides what each iteration does.

It keeps its own records outside the folder of the run. Before it prints anything, it writes a copy, and a row in a
ledger for the usage that it reports; afterwards, the number of bytes that it has printed. It needs only the standard
library.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import Any

SENTINEL = "@@RALPH@@ "
DONE = "<promise>COMPLETE</promise>"
#: Costs are in these parts of a dollar, so that sums are exact.
PART = 1 / 1024


class Act(StrEnum):
    """What an iteration does."""

    WORK = "work"
    TURNS = "several turns"
    COMMIT = "commit"
    FLOOD = "flood"
    LIMITED = "rate limited"
    OVERLOADED = "overloaded"
    EXIT = "exits with 1"
    CRASH = "crashes"
    FORK = "forks away"


_GOOD = {Act.WORK: 10, Act.TURNS: 4, Act.COMMIT: 2, Act.FLOOD: 1, Act.FORK: 0.4}
_BAD = {Act.EXIT: 2, Act.CRASH: 2, Act.LIMITED: 1, Act.OVERLOADED: 1}


def act(seed: int, iteration: int, last: int) -> Act:
    """Never two failures in a row, so that failures do not end the night; the last iteration succeeds."""
    rng = random.Random(f"{seed}/{iteration}")
    if iteration >= last:
        return Act.WORK
    acts = _BAD if iteration % 2 and rng.random() < 0.3 else _GOOD
    return rng.choices(list(acts), list(acts.values()))[0]


def usages(seed: int, iteration: int, last: int) -> list[dict[str, Any]]:
    """The usage that it reports, turn by turn."""
    rng = random.Random(f"{seed}/{iteration}/usage")
    turns = rng.randint(2, 5) if act(seed, iteration, last) is Act.TURNS else 1
    return [
        {
            "prompt_tokens": rng.randint(100, 9999),
            "completion_tokens": rng.randint(1, 999),
            "cost_usd": rng.randint(1, 99) * PART,
        }
        for _ in range(turns)
    ]


class Worker:
    def __init__(self, ledger: Path, iteration: int) -> None:
        self.iteration = iteration
        self.copy = os.open(ledger / f"{iteration:04d}.out", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.rows = os.open(ledger / "rows.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.count = os.open(ledger / f"{iteration:04d}.count", os.O_WRONLY | os.O_CREAT, 0o600)
        self.printed = 0

    def note(self, what: str, **fields: Any) -> None:
        row = {"n": self.iteration, "what": what, "time": time.time(), **fields}
        os.write(self.rows, json.dumps(row).encode() + b"\n")
        os.fsync(self.rows)

    def say(self, *events: dict[str, Any]) -> None:
        data = "".join(f"{SENTINEL}{json.dumps(event, ensure_ascii=False)}\n" for event in events).encode()
        os.write(self.copy, data)
        while data:
            sent = os.write(1, data)
            data = data[sent:]
            self.printed += sent
            os.pwrite(self.count, b"%012d" % self.printed, 0)

    def text(self, words: str) -> None:
        self.say({"type": "text", "tag": "AI", "text": words})

    def meta(self, kind: str, **fields: Any) -> None:
        self.say({"type": "meta", "meta": {"kind": kind, **fields}})

    def tool(self, number: int, output: str) -> None:
        call = {"id": f"{self.iteration}-{number}", "name": "Bash"}
        self.say(
            {"type": "tool_start", "tool": {**call, "input": {"command": "make test"}}},
            {"type": "tool_output", "tool": call, "text": output},
            {"type": "tool_end", "tool": {**call, "status": "ok"}},
        )


def main() -> None:
    ledger, seed, last = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    iteration = int(os.environ["RALPH_ITERATION"])
    what = act(seed, iteration, last)
    worker = Worker(ledger, iteration)
    worker.note("begin", act=what)
    worker.text(f"iteration {iteration}: {what}")
    for number, usage in enumerate(usages(seed, iteration, last)):
        worker.tool(number, f"turn {number} of iteration {iteration}\n" * 20)
        worker.note("usage", usage=usage)
        worker.say({"type": "usage", "usage": usage})
        time.sleep(0.02)
    Path("work.txt").write_text(f"{iteration}\n")
    if iteration >= last:
        worker.text(DONE)
    elif what is not Act.LIMITED and what is not Act.OVERLOADED:
        worker.text(f"that was iteration {iteration}")
    worker.note("end")
    end(worker, what)


def end(worker: Worker, what: Act) -> None:
    match what:
        case Act.COMMIT:
            subprocess.run(["git", "commit", "-qam", f"iteration {worker.iteration}"], check=False)
        case Act.FLOOD:
            for number in range(40):
                worker.say({"type": "text", "tag": "THINK", "text": f"{number} " + "x" * 10_000})
            worker.text("so much for that")
        case Act.LIMITED:
            worker.meta("rate_limit", resets_at=round(time.time() + 1, 3))
            worker.meta("error", message="slow down", **{"class": "rate_limited"})
            sys.exit(1)
        case Act.OVERLOADED:
            worker.meta("error", message="529 overloaded", **{"class": "overloaded"})
            sys.exit(1)
        case Act.EXIT:
            sys.exit(1)
        case Act.CRASH:
            os.kill(os.getpid(), random.choice((signal.SIGKILL, signal.SIGABRT, signal.SIGTERM)))
        case Act.FORK:
            # leaves its parent, its session and its pipes: only ralph can still find it
            nothing = subprocess.DEVNULL
            subprocess.Popen(["sleep", "600"], start_new_session=True, stdin=nothing, stdout=nothing, stderr=nothing)


if __name__ == "__main__":
    main()
