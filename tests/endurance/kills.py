"""Kills ralph at random moments and checks the journals: `python -m endurance.kills --count 300`."""

from __future__ import annotations

import argparse
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from endurance import chatter, readback
from processes import MARK, eventually, marked

LAST = 4
_LIMIT = 60.0
_AGENT = Path(chatter.__file__)


class Target(StrEnum):
    """What gets SIGKILL."""

    RALPH = "ralph"
    BOTH = "ralph and its keeper"
    GROUP = "ralph's process group"
    KEEPER = "the keeper alone"


class Killed(NamedTuple):
    target: Target
    #: seconds after the start
    at: float
    #: how far the run got: the last event that ralph itself wrote, or which files there were
    reached: str
    torn: bool
    complaints: list[str]

    def __str__(self) -> str:
        return f"{self.target}, after {self.at * 1000:.0f} ms ({self.reached}): {'; '.join(self.complaints)}"


class Place:
    """A repository in which many runs are killed, one after the other."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.seed = seed
        #: how many seconds a run takes, estimated
        self.life = 0.0
        self.mark = uuid4().hex
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("RALPH_", "GIT_", "XDG_"))}
        self.env |= {"HOME": str(root), "GIT_CONFIG_GLOBAL": os.devnull, "RALPH_TRUST": "1", MARK: self.mark}
        self.repo = root / "repo"
        self.repo.mkdir(parents=True)
        (self.repo / "PROMPT.md").write_text("Talk.\n")
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
        for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "start"]):
            subprocess.run(["git", *identity, *command], cwd=self.repo, env=self.env, check=True)

    def start(self) -> subprocess.Popen[bytes]:
        agent = shlex.join([sys.executable, "-ISB", str(_AGENT), str(self.seed), str(LAST)])
        return subprocess.Popen(
            [
                *(sys.executable, "-m", "ralph", "run", "20", "--agent-cmd", agent, "--transcript", "rtf1"),
                *("--verify", "test -f PROMPT.md", "--ui", "plain", "--stuck-after", "0", "--grace", "1"),
            ],
            cwd=self.repo,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def whole_run(self) -> None:
        """A run that is not killed: it must complete."""
        before = time.monotonic()
        process = self.start()
        _, errors = process.communicate(timeout=_LIMIT)
        self.life = time.monotonic() - before
        assert process.returncode == 0, (process.returncode, errors)
        assert not (left := self.left()), left
        complaints = readback.check(self.newest(), self.seed, LAST)
        assert complaints == [], complaints

    def kill(self, target: Target, at: float) -> Killed:
        before, began = self.newest(), time.monotonic()
        process = self.start()
        try:
            process.wait(at)
            self.life = time.monotonic() - began
        except subprocess.TimeoutExpired:
            self._kill(process, target)
            self.life *= 1.02  # its real duration is unknown; the machine may be slower now
        _, errors = process.communicate(timeout=_LIMIT)
        complaints = []
        if process.returncode not in (0, *([-signal.SIGKILL] if target is not Target.KEEPER else [])):
            complaints.append(f"ralph ended with {process.returncode}: {errors.decode()[-300:]}")
        if left := self.left():
            complaints.append(f"processes are left: {left}")
        run = self.newest()
        complaints += readback.check(run, self.seed, LAST)
        for command in (["runs"], ["show", run.name], ["tail", run.name]):
            complaints += self._works(command)
        journal = readback.Journal(run)
        own = [e["meta"]["kind"] for e in journal.events if e["type"] == "meta" and e["meta"]["kind"] in readback.OURS]
        reached = own[-1] if own else "run.json" if (run / "run.json").exists() else "a folder"
        if run == before:
            reached = "nothing yet"
        return Killed(target, at, reached, bool(journal.torn), complaints)

    def _kill(self, process: subprocess.Popen[bytes], target: Target) -> None:
        found = keepers(process.pid)
        victims = {
            Target.RALPH: [process.pid],
            Target.BOTH: [process.pid, *found],
            Target.GROUP: [-process.pid],
            Target.KEEPER: found,
        }[target]
        if random.random() < 0.5:
            victims = victims[::-1]
        for pid in victims:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it has just ended

    def _works(self, command: list[str]) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-m", "ralph", *command], cwd=self.repo, env=self.env, capture_output=True, timeout=_LIMIT
        )
        if done.returncode == 0 and b"Traceback" not in done.stderr:
            return []
        return [f"`ralph {command[0]}` ended with {done.returncode}: {done.stderr.decode()[-300:]}"]

    def newest(self) -> Path:
        return max((self.repo / ".ralph" / "runs").iterdir())

    def left(self) -> dict[int, str]:
        eventually(lambda: not marked(self.mark), 15)
        return marked(self.mark)


def keepers(pid: int) -> list[int]:
    """The keepers among the direct children of a ralph process; the others are git."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [int(c) for c in children if b"keeper.py" in Path(f"/proc/{c}/cmdline").read_bytes()]
    except OSError:
        return []


def kill_many(root: Path, count: int, seed: int, workers: int = 2) -> list[Killed]:
    """Spreads the kills over the whole duration of a run, from before its first file to after its last."""
    rng = random.Random(seed)
    targets = [list(Target)[number % len(Target)] for number in range(count)]
    # As fractions of the duration. Nothing is written in the first fifth, so few kills belong there.
    early = max(1, count // 10)
    moments = [0.2 * (number + rng.random()) / early for number in range(early)]
    moments += [0.2 + 0.9 * (number + rng.random()) / (count - early) for number in range(count - early)]
    rng.shuffle(moments)
    plan = list(zip(targets, moments, strict=True))

    def work(worker: int) -> list[Killed]:
        place = Place(root / f"place{worker}", seed + worker)
        place.whole_run()
        killed = [place.kill(target, moment * place.life) for target, moment in plan[worker::workers]]
        place.whole_run()  # whatever the kills left behind, the next run must complete
        return killed

    with ThreadPoolExecutor(workers) as pool:
        return [one for part in pool.map(work, range(workers)) for one in part]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m endurance.kills", description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ralph-kills-") as name:
        killed = kill_many(Path(name), options.count, options.seed, options.workers)
    bad = [one for one in killed if one.complaints]
    print(f"{len(killed)} kills in {time.monotonic() - began:.0f} s, seed {options.seed}")
    for target, count in Counter(one.target for one in killed).items():
        print(f"  {count:4} × {target}")
    print("how far the runs got:")
    for reached, count in Counter(one.reached for one in killed).most_common():
        print(f"  {count:4} × {reached}")
    print(f"incomplete last lines: {sum(one.torn for one in killed)}; damaged journals: {len(bad)}")
    for one in bad:
        print(f"  {one}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
