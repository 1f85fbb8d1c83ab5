"""Simulates a night: a run of hundreds of iterations that is interrupted again and again, and resumed each time.

`python -m endurance.night --iterations 300 --kills 40`. Two short runs that reach their budget follow.
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
#: What a Ctrl-C does to an interpreter that is still starting: no code of ours runs yet.
_PYTHON = "Fatal Python error: init_import_site"
_FAST = "retry_delay: 0.2\nretry_delay_max: 1\ngrace: 2\n"


class Interruption(StrEnum):
    """How ralph is interrupted."""

    KILL = "SIGKILL"
    TERM = "SIGTERM"
    INT = "SIGINT"
    TWICE = "SIGINT twice"
    BOTH = "SIGKILL, its keeper too"
    KEEPER = "SIGKILL of the keeper alone"


#: The correct exit codes; the negative ones are those of an interpreter that is still starting.
_CODES = {
    Interruption.KILL: (-9,),
    Interruption.BOTH: (-9,),
    Interruption.TERM: (143, -15),
    Interruption.INT: (130, -2),
    Interruption.TWICE: (130, -2),
    Interruption.KEEPER: (),
}


class Night(NamedTuple):
    """The result of a night."""

    code: int
    run: Path
    interruptions: list[tuple[Interruption, int]]
    seconds: float
    complaints: list[str]


class Workspace:
    """A repository, a ledger next to it, and one run that is started once and then resumed."""

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
        """Whether the agent of an iteration has reached its "begin", a "usage" or its "end"."""
        path = self.ledger / "rows.jsonl"
        rows = path.read_bytes().splitlines() if path.exists() else []
        return any(row["what"] == what and row["n"] == iteration for row in map(json.loads, rows[-8:]))

    @property
    def run(self) -> Path:
        return max((self.repo / ".ralph" / "runs").iterdir())

    def start(self, *flags: str) -> subprocess.Popen[bytes]:
        agent = [sys.executable, "-ISB", worker.__file__, str(self.ledger), str(self.seed), str(self.last)]
        return self._ralph("--agent-cmd", shlex.join(agent), "--transcript", "rtf1", "--verify", "true", *flags)

    def resume(self, *flags: str) -> subprocess.Popen[bytes]:
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
        """Whether there is a run to resume."""
        runs = self.repo / ".ralph" / "runs"
        return runs.is_dir() and any(b"run_start" in p.read_bytes() for p in runs.glob("*/events.jsonl"))

    def interrupt(self, process: subprocess.Popen[bytes], interruption: Interruption) -> int:
        """Interrupts ralph and waits for it to end; its exit code."""
        pids = keepers(process.pid)
        match interruption:
            case Interruption.KILL:
                hits = [(process.pid, signal.SIGKILL)]
            case Interruption.BOTH:
                hits = [(pid, signal.SIGKILL) for pid in (*pids, process.pid)]
            case Interruption.KEEPER:
                hits = [(pid, signal.SIGKILL) for pid in pids]
            case Interruption.TERM:
                hits = [(process.pid, signal.SIGTERM)]
            case Interruption.INT:
                hits = [(process.pid, signal.SIGINT)]
            case Interruption.TWICE:
                hits = [(process.pid, signal.SIGINT)] * 2
        for pid, number in hits:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass  # it has just ended
        if interruption is Interruption.KEEPER:
            return 0  # ralph keeps running
        code = process.wait(_LIMIT)
        starting = interruption in (Interruption.INT, Interruption.TWICE) and code == 1 and _PYTHON in self.screen()
        if code not in (0, *_CODES[interruption]) and not starting:
            self.complaints.append(f"after {interruption} ralph ended with {code}:\n{self.screen()}")
        self.check_processes(f"after {interruption}")
        return code

    def check_processes(self, when: str) -> None:
        if not eventually(lambda: not marked(self.mark), 20):
            left = marked(self.mark)
            self.complaints.append(f"{when}, processes are left: {left}")
            for pid in left:
                os.kill(pid, signal.SIGKILL)

    def screen(self) -> str:
        return (self.repo.parent / "screen").read_text(errors="replace")[-2000:]


def run_night(root: Path, seed: int, iterations: int, kills: int) -> Night:
    """Runs a whole night; `complaints` lists what is wrong."""
    rng = random.Random(seed)
    space = Workspace(root, seed, iterations)
    plan = [usage for n in range(1, iterations + 3) for usage in worker.usages(seed, n, iterations)]
    tokens = sum(u["prompt_tokens"] + u["completion_tokens"] for u in plan)
    cost = sum(u["cost_usd"] for u in plan)
    limits = [str(iterations), "--max-tokens", str(tokens), "--max-cost", str(cost)]
    began = time.monotonic()
    interruptions: list[tuple[Interruption, int]] = []
    process = space.start(*limits)
    if not eventually(space.begun):
        return Night(-1, space.repo, [], 0.0, [f"the run never began:\n{space.screen()}"])
    # The interruptions are spread over the iterations: each comes shortly after an iteration or a resume has started.
    marks = sorted(rng.sample(range(1, iterations), kills))
    while marks and process.poll() is None:
        n = _newest(space.run)
        if n < marks[0]:
            time.sleep(0.01)
            continue
        marks = [mark for mark in marks[1:] if mark > n]
        # When the folder exists, when the agent starts, when it has reported usage, when it has finished, or later.
        moment = rng.choice(("", "begin", "usage", "usage", "end"))
        eventually(lambda: not moment or space.reached(n, moment) or process.poll() is not None, 1)  # noqa: B023
        time.sleep(rng.choice((0.0, 0.005, 0.02, 0.3)) * rng.random())
        interruption = rng.choices(list(Interruption), (4, 2, 2, 1, 1, 1))[0]
        if interruption is Interruption.BOTH and _forks(space, n):
            interruption = Interruption.KILL  # nobody would be left to end what forked away
        if process.poll() is not None:
            break
        interruptions.append((interruption, n))
        if interruption is Interruption.KEEPER:
            space.interrupt(process, interruption)
            continue
        space.interrupt(process, interruption)
        process = space.resume()
        if rng.random() < 0.2:  # and again, while it is still resuming
            time.sleep(rng.random() * 0.4)
            interruptions.append((Interruption.KILL, n))
            space.interrupt(process, Interruption.KILL)
            process = space.resume()
    try:
        code = process.wait(_LIMIT + iterations)
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
        space.complaints.append(f"the run did not end:\n{space.screen()}")
    seconds = time.monotonic() - began
    space.check_processes("at the end")
    if code != 0:
        space.complaints.append(f"the run ended with {code}:\n{space.screen()}")
    orphaned = frozenset(
        m for interruption, n in interruptions for m in (n, n + 1) if interruption is Interruption.BOTH
    )
    space.complaints += account.audit(space.run, space.ledger, orphaned)
    return Night(code, space.run, interruptions, seconds, space.complaints)


def _newest(run: Path) -> int:
    return max((int(p.name) for p in (run / "iterations").glob("[0-9]*")), default=0)


def _forks(space: Workspace, iteration: int) -> bool:
    """Whether the agent of this iteration or the next one forks away."""
    acts = (worker.act(space.seed, n, space.last) for n in (iteration, iteration + 1))
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
        night = run_night(root, options.seed, options.iterations, options.kills)
        journal = Journal(night.run)
        print(
            f"seed {options.seed}: {len(journal.iterations())} iterations in {night.seconds:.0f} s, exit {night.code}"
        )
        print("interruptions:", ", ".join(f"{n} × {b}" for b, n in Counter(b for b, _ in night.interruptions).items()))
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
    print("nothing is wrong" if not wrong else f"wrong: {len(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
