"""A night in fast motion: a run of hundreds of iterations that is killed again and again and gone on with each time.

`python -m endurance.night --iterations 300 --kills 40`; after it come two short runs that reach their ceiling.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from endurance import account, worker
from endurance.kills import keepers
from endurance.readback import Journal
from processes import MARK, eventually, marked

_LIMIT = 120.0
#: What a Ctrl-C does to an interpreter that has not come to its first line: nobody's code can change that.
_PYTHON = "Fatal Python error: init_import_site"
_FAST = "retry_delay: 0.2\nretry_delay_max: 1\ngrace: 2\n"


class Blow(StrEnum):
    """What happens to ralph."""

    KILL = "SIGKILL"
    TERM = "SIGTERM"
    INT = "SIGINT"
    TWICE = "SIGINT twice"
    BOTH = "SIGKILL, its keeper too"
    KEEPER = "SIGKILL of the keeper alone"


#: The exit codes that are right; the negative ones are for a process that had not yet come to its first line.
_CODES = {
    Blow.KILL: (-9,),
    Blow.BOTH: (-9,),
    Blow.TERM: (143, -15),
    Blow.INT: (130, -2),
    Blow.TWICE: (130, -2),
    Blow.KEEPER: (),
}


class Night(NamedTuple):
    """What became of it."""

    code: int
    run: Path
    blows: list[tuple[Blow, int]]
    seconds: float
    complaints: list[str]


class Bed:
    """A repository, a ledger beside it, and one run that is started once and then only gone on with."""

    def __init__(self, root: Path, seed: int, last: int) -> None:
        self.seed, self.last = seed, last
        self.mark = uuid4().hex
        self.ledger = root / "ledger"
        self.repo = root / "repo"
        self.complaints: list[str] = []
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("RALPH_", "GIT_", "XDG_"))}
        self.env |= {"HOME": str(root), "GIT_CONFIG_GLOBAL": os.devnull, "RALPH_TRUST": "1", MARK: self.mark}
        for who in ("AUTHOR", "COMMITTER"):
            self.env |= {f"GIT_{who}_NAME": "t", f"GIT_{who}_EMAIL": "t@example.invalid"}
        self.ledger.mkdir(parents=True)
        self.repo.mkdir()
        (self.repo / "PROMPT.md").write_text("Work.\n")
        (self.repo / "work.txt").write_text("0\n")
        (self.repo / "ralph.yml").write_text(_FAST)
        for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "start"]):
            subprocess.run(["git", *command], cwd=self.repo, env=self.env, check=True)

    def reached(self, iteration: int, what: str) -> bool:
        """Whether the agent of an iteration has come so far: its "begin", a "usage", its "end"."""
        path = self.ledger / "rows.jsonl"
        rows = path.read_bytes().splitlines() if path.exists() else []
        return any(row["what"] == what and row["n"] == iteration for row in map(json.loads, rows[-8:]))

    @property
    def run(self) -> Path:
        return max((self.repo / ".ralph" / "runs").iterdir())

    def start(self, *flags: str) -> subprocess.Popen[bytes]:
        agent = [sys.executable, "-ISB", worker.__file__, str(self.ledger), str(self.seed), str(self.last)]
        return self._ralph("--agent-cmd", shlex.join(agent), "--transcript", "rtf1", "--verify", "true", *flags)

    def go_on(self, *flags: str) -> subprocess.Popen[bytes]:
        return self._ralph("--resume", *flags)

    def _ralph(self, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.repo.parent / "screen").open("ab") as screen:
            return subprocess.Popen(
                [sys.executable, "-m", "ralph", "run", *arguments, "--ui", "plain"],
                cwd=self.repo,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=screen,
                stderr=screen,
                start_new_session=True,
            )

    def begun(self) -> bool:
        """Whether there is anything to go on with."""
        runs = self.repo / ".ralph" / "runs"
        return runs.is_dir() and any(b"run_start" in p.read_bytes() for p in runs.glob("*/events.jsonl"))

    def strike(self, process: subprocess.Popen[bytes], blow: Blow) -> int:
        """Hits ralph and waits for its end; gives its exit code."""
        pids = keepers(process.pid)
        match blow:
            case Blow.KILL:
                hits = [(process.pid, signal.SIGKILL)]
            case Blow.BOTH:
                hits = [(pid, signal.SIGKILL) for pid in (*pids, process.pid)]
            case Blow.KEEPER:
                hits = [(pid, signal.SIGKILL) for pid in pids]
            case Blow.TERM:
                hits = [(process.pid, signal.SIGTERM)]
            case Blow.INT:
                hits = [(process.pid, signal.SIGINT)]
            case Blow.TWICE:
                hits = [(process.pid, signal.SIGINT)] * 2
        for pid, number in hits:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass  # it has just ended
        if blow is Blow.KEEPER:
            return 0  # ralph goes on
        code = process.wait(_LIMIT)
        starting = blow in (Blow.INT, Blow.TWICE) and code == 1 and _PYTHON in self.screen()
        if code not in (0, *_CODES[blow]) and not starting:
            self.complaints.append(f"after {blow} ralph ended with {code}:\n{self.screen()}")
        self.check_processes(f"after {blow}")
        return code

    def check_processes(self, when: str) -> None:
        if not eventually(lambda: not marked(self.mark), 20):
            left = marked(self.mark)
            self.complaints.append(f"{when}, processes are left: {left}")
            for pid in left:
                os.kill(pid, signal.SIGKILL)

    def screen(self) -> str:
        return (self.repo.parent / "screen").read_text(errors="replace")[-2000:]


def spend(root: Path, seed: int, iterations: int, kills: int) -> Night:
    """One whole night; what is wrong with it is in `complaints`."""
    rng = random.Random(seed)
    bed = Bed(root, seed, iterations)
    plan = [usage for n in range(1, iterations + 3) for usage in worker.usages(seed, n, iterations)]
    tokens = sum(u["prompt_tokens"] + u["completion_tokens"] for u in plan)
    cost = sum(u["cost_usd"] for u in plan)
    limits = [str(iterations), "--max-tokens", str(tokens), "--max-cost", str(cost)]
    began = time.monotonic()
    blows: list[tuple[Blow, int]] = []
    process = bed.start(*limits)
    if not eventually(bed.begun):
        return Night(-1, bed.repo, [], 0.0, [f"the run never began:\n{bed.screen()}"])
    # The kills are spread over the iterations, each a moment after one of them has begun, or in the middle of a start.
    marks = sorted(rng.sample(range(1, iterations), kills))
    while marks and process.poll() is None:
        n = _newest(bed.run)
        if n < marks[0]:
            time.sleep(0.01)
            continue
        marks = [mark for mark in marks[1:] if mark > n]
        # When its folder is there, when its agent speaks, when it has told a usage, when it is through, or just later.
        moment = rng.choice(("", "begin", "usage", "usage", "end"))
        eventually(lambda: not moment or bed.reached(n, moment) or process.poll() is not None, 1)  # noqa: B023
        time.sleep(rng.choice((0.0, 0.005, 0.02, 0.3)) * rng.random())
        blow = rng.choices(list(Blow), (4, 2, 2, 1, 1, 1))[0]
        if blow is Blow.BOTH and _forks(bed, n):
            blow = Blow.KILL  # what forked away would have nobody left who knows of it
        if process.poll() is not None:
            break
        blows.append((blow, n))
        if blow is Blow.KEEPER:
            bed.strike(process, blow)
            continue
        bed.strike(process, blow)
        process = bed.go_on()
        if rng.random() < 0.2:  # and once more, while it is still finding its way back
            time.sleep(rng.random() * 0.4)
            blows.append((Blow.KILL, n))
            bed.strike(process, Blow.KILL)
            process = bed.go_on()
    try:
        code = process.wait(_LIMIT + iterations)
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
        bed.complaints.append(f"it did not end:\n{bed.screen()}")
    seconds = time.monotonic() - began
    bed.check_processes("at the end")
    if code != 0:
        bed.complaints.append(f"it ended with {code}:\n{bed.screen()}")
    orphaned = frozenset(m for blow, n in blows for m in (n, n + 1) if blow is Blow.BOTH)
    bed.complaints += account.audit(bed.run, bed.ledger, orphaned)
    return Night(code, bed.run, blows, seconds, bed.complaints)


def _newest(run: Path) -> int:
    return max((int(p.name) for p in (run / "iterations").glob("[0-9]*")), default=0)


def _forks(bed: Bed, iteration: int) -> bool:
    """Whether an agent forks away now, or will in a moment."""
    acts = (worker.act(bed.seed, n, bed.last) for n in (iteration, iteration + 1))
    return worker.Act.FORK in acts


def main() -> int:
    from endurance import ceiling

    parser = argparse.ArgumentParser(prog="python -m endurance.night", description=__doc__)
    parser.add_argument("--iterations", type=int, default=300)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--keep", help="leave the files in this folder, which must not exist")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ralph-night-") as name:
        root = Path(options.keep or name)
        night = spend(root, options.seed, options.iterations, options.kills)
        journal = Journal(night.run)
        print(
            f"seed {options.seed}: {len(journal.iterations())} iterations in {night.seconds:.0f} s, exit {night.code}"
        )
        print("blows:", ", ".join(f"{n} × {b}" for b, n in Counter(b for b, _ in night.blows).items()))
        outcomes = Counter(str(meta["outcome"]) for meta in journal.metas("iteration_end"))
        print("outcomes:", ", ".join(f"{n} × {o}" for o, n in outcomes.most_common()))
        for line in account.statement(night.run, root / "ledger"):
            print(line)
        wrong = [*night.complaints]
        for which in ("tokens", "cost"):
            ended = ceiling.reach(root / which, options.seed, which)
            print(ended.said)
            wrong += ended.complaints
    for complaint in wrong:
        print(f"WRONG: {complaint}")
    print("nothing is wrong" if not wrong else f"{len(wrong)} complaints")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
