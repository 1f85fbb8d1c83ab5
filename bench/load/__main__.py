"""`python -m bench.load [--loops 20] [--seconds 120] [--ui plain]`: prints what each loop did, and the table."""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bench.load.lateness import LoopResult, read_result
from bench.load.loops import RATE, Kind, Loop, prepare
from bench.load.watch import Peak, busy
from bench.measure import MB
from bench.table import Row, machine, render
from ralph.system.text import count

if TYPE_CHECKING:
    import subprocess

_LATE = 1.0
_MEMORY = 60.0
_CHECK_EVERY = 1.0
_TOO_LONG = 60.0


class LoadRun(msgspec.Struct, frozen=True):
    """All loops, from the first start to the last end."""

    peaks: list[Peak]
    interrupted: dict[int, float]
    seconds: float
    #: processor seconds of the loops with their agents, and of all processes on the machine
    ours: float
    total: float


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.load", description=__doc__)
    parser.add_argument("--loops", type=int, default=20, help="how many at once [default: 20]")
    parser.add_argument("--seconds", type=float, default=120.0, help="for how long [default: 120]")
    parser.add_argument("--ui", default="plain", help="the screen, which goes into a file [default: plain]")
    parser.add_argument("--dir", help="where the files go: 6 MB per loop and second [default: the temporary folder]")
    options = parser.parse_args()
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="ralph-load-", dir=options.dir) as name:
        loops = prepare(Path(name), options.loops, options.seconds)
        run = _run(loops, options.ui, options.seconds)
        results = [read_result(loop, run.interrupted.get(loop.number)) for loop in loops]
    print(_each(loops, results, run))
    rows = _rows(results, run, options.loops)
    print(render(rows))
    others = (run.total - run.ours) / run.seconds
    print(f"\n{machine()}; --ui {options.ui}; load average before: {before:.1f}; others used {others:.2f} cores")
    return 0 if all(row.reached is not False for row in rows) else 1


def _run(loops: list[Loop], ui: str, seconds: float) -> LoadRun:
    used, all_used, began = _used(), busy(), time.monotonic()
    processes = {loop.number: loop.start(ui) for loop in loops}
    peaks = [Peak() for _ in loops]
    interrupted: dict[int, float] = {}
    try:
        while any(process.poll() is None for process in processes.values()):
            now = time.monotonic() - began
            for loop in loops:
                process = processes[loop.number]
                peaks[loop.number].update(process.pid)
                if loop.kind is Kind.STOP and now >= loop.after and loop.number not in interrupted:
                    interrupted[loop.number] = time.time()
                    process.send_signal(signal.SIGINT)
            if now > seconds + _TOO_LONG:
                raise RuntimeError(f"after {now:.0f} s these loops have not ended: {_alive(processes)}")
            time.sleep(_CHECK_EVERY)
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
    took = time.monotonic() - began
    return LoadRun(peaks, interrupted, took, _used() - used, busy() - all_used)


def _alive(processes: dict[int, subprocess.Popen[bytes]]) -> list[int]:
    return [number for number, process in processes.items() if process.poll() is None]


def _used() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _each(loops: list[Loop], results: list[LoopResult], run: LoadRun) -> str:
    lines = [
        "loop  kind         format  late by (ms)                       MB/s  pipe full  MB printed   PSS MB  RSS MB"
    ]
    for loop, one, peak in zip(loops, results, run.peaks, strict=True):
        late = ", ".join(f"{'grace ' if x.kind is Kind.GRACE else ''}{x.seconds * 1000:.0f}" for x in one.late)
        lines.append(
            f"{loop.number:4}  {loop.kind:<11}  {loop.form:<6}  {late:<33}  {one.rate / MB:5.2f}"
            f"  {one.blocked:7.2f} s  {one.printed / MB:10.1f}  {peak.pss:7.1f} {peak.rss:7.1f}"
        )
    return "\n".join(lines) + "\n"


def _rows(results: list[LoopResult], run: LoadRun, loops: int) -> list[Row]:
    rows = []
    for kind in Kind:
        times = [late.seconds for one in results for late in one.late if late.kind is kind]
        if times:
            worst, middle = max(times), sorted(times)[len(times) // 2]
            note = f"median {middle * 1000:.0f} ms, {count(len(times), 'time')}, earliest {min(times) * 1000:.0f} ms"
            good = worst <= _LATE and min(times) > -0.1  # too early is wrong, too
            rows.append(Row("", f"{kind}: late by at most", f"{worst * 1000:.0f} ms", "≤ 1000 ms", good, note))
    pss, rss = max(p.pss for p in run.peaks), max(p.rss for p in run.peaks)
    rows.append(Row("", "memory of a loop, PSS", f"{pss:.1f} MB", f"< {_MEMORY:.0f} MB", pss < _MEMORY, "with keeper"))
    rows.append(Row("", "memory of a loop, RSS", f"{rss:.1f} MB", note="counts shared pages for each process"))
    lost = sum(one.lost for one in results)
    printed = sum(one.printed for one in results)
    rows.append(Row("", "bytes lost or wrong", f"{lost}", "0", lost == 0, f"of {printed / MB:.0f} MB printed"))
    slowest = min(one.rate for one in results)
    aim = RATE * 0.95
    rows.append(Row("", "the slowest agent printed", f"{slowest / MB:.2f} MB/s", f"≥ {aim / MB} MB/s", slowest >= aim))
    note = f"{run.seconds:.0f} s, {count(loops, 'loop')} with their agents"
    rows.append(Row("", "processor time", f"{run.ours / run.seconds:.2f} cores", note=note))
    return rows


if __name__ == "__main__":
    sys.exit(main())
