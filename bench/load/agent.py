"""The agent: prints a recording over and over at a steady rate, and logs what it did when.

    agent.py MATERIAL LOG RATE FLOOD DEAF

It prints for FLOOD seconds (0: forever) and is silent from then on. A deaf agent ignores requests to end. It needs only
the standard library, so that twenty of them start quickly.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

_STEP = 0.02
#: A deaf agent is killed without notice, so it logs at this interval that it is alive.
_BEAT = 0.1


class Agent:
    def __init__(self, material: Path, log: Path, rate: int, *, deaf: bool) -> None:
        data = material.read_bytes()
        self.size = len(data)
        self.data = data + data[: int(rate * _STEP) * 100]  # a step never reaches past the end
        self.log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.rate = rate
        self.deaf = deaf
        self.written = 0
        self.blocked = 0.0
        self.wrote = time.time()
        self.note("start")
        signal.signal(signal.SIGTERM, self.asked_to_end)

    def note(self, what: str) -> None:
        row = {"what": what, "time": time.time(), "wrote": self.wrote, "bytes": self.written, "blocked": self.blocked}
        os.write(self.log, json.dumps(row).encode() + b"\n")

    def asked_to_end(self, *_: object) -> None:
        self.note("term")
        if not self.deaf:
            os._exit(143)

    def flood(self, seconds: float) -> None:
        began = beat = time.monotonic()
        while not seconds or time.monotonic() - began < seconds:
            due = int((time.monotonic() - began) * self.rate) - self.written
            if due > 0:
                self.write(min(due, len(self.data) - self.size))
            if self.deaf and time.monotonic() - beat > _BEAT:
                beat = time.monotonic()
                self.note("alive")
            time.sleep(_STEP)

    def write(self, count: int) -> None:
        at = self.written % self.size
        self.wrote, before = time.time(), time.monotonic()
        self.written += os.write(1, self.data[at : at + count])
        self.blocked = max(self.blocked, time.monotonic() - before)


def main() -> None:
    material, log, rate, flood, deaf = sys.argv[1:]
    agent = Agent(Path(material), Path(log), int(rate), deaf=deaf == "deaf")
    agent.flood(float(flood))
    agent.note("silent")
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main()
