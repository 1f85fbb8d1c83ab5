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

from bench.load.cast import RATE, Kind, Member, gather
from bench.load.late import Seen, look
from bench.load.watch import Peak, busy
from bench.measure import MB
from bench.table import Row, machine, render

if TYPE_CHECKING:
    import subprocess

_LATE = 1.0
_MEMORY = 60.0
_LOOK = 1.0
_TOO_LONG = 60.0


class Ran(msgspec.Struct, frozen=True):
    """All loops, from the first start to the last end."""

    peaks: list[Peak]
    interrupted: dict[int, float]
    seconds: float
    #: processor seconds: of the loops with their agents, and of everybody
    ours: float
    everybody: float


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.load", description=__doc__)
    parser.add_argument("--loops", type=int, default=20, help="how many at once [default: 20]")
    parser.add_argument("--seconds", type=float, default=120.0, help="for how long [default: 120]")
    parser.add_argument("--ui", default="plain", help="the screen, which goes into a file [default: plain]")
    parser.add_argument("--dir", help="where the files go: 6 MB a loop and second [default: the temporary folder]")
    options = parser.parse_args()
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="ralph-load-", dir=options.dir) as name:
        members = gather(Path(name), options.loops, options.seconds)
        ran = _run(members, options.ui, options.seconds)
        seen = [look(member, ran.interrupted.get(member.number)) for member in members]
    print(_each(members, seen, ran))
    rows = _rows(seen, ran, options.loops)
    print(render(rows))
    others = (ran.everybody - ran.ours) / ran.seconds
    print(f"\n{machine()}; --ui {options.ui}; load average before: {before:.1f}; others used {others:.2f} cores")
    return 0 if all(row.reached is not False for row in rows) else 1


def _run(members: list[Member], ui: str, seconds: float) -> Ran:
    used, all_used, began = _used(), busy(), time.monotonic()
    processes = {member.number: member.start(ui) for member in members}
    peaks = [Peak() for _ in members]
    interrupted: dict[int, float] = {}
    try:
        while any(process.poll() is None for process in processes.values()):
            now = time.monotonic() - began
            for member in members:
                process = processes[member.number]
                peaks[member.number].look(process.pid)
                if member.kind is Kind.STOP and now >= member.after and member.number not in interrupted:
                    interrupted[member.number] = time.time()
                    process.send_signal(signal.SIGINT)
            if now > seconds + _TOO_LONG:
                raise RuntimeError(f"after {now:.0f} s not all have ended: {_alive(processes)}")
            time.sleep(_LOOK)
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
    took = time.monotonic() - began
    return Ran(peaks, interrupted, took, _used() - used, busy() - all_used)


def _alive(processes: dict[int, subprocess.Popen[bytes]]) -> list[int]:
    return [number for number, process in processes.items() if process.poll() is None]


def _used() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _each(members: list[Member], seen: list[Seen], ran: Ran) -> str:
    lines = [
        "loop  kind         format  late by (ms)                       MB/s  pipe full  MB printed   PSS MB  RSS MB"
    ]
    for member, one, peak in zip(members, seen, ran.peaks, strict=True):
        late = ", ".join(f"{'grace ' if x.kind is Kind.GRACE else ''}{x.seconds * 1000:.0f}" for x in one.late)
        lines.append(
            f"{member.number:4}  {member.kind:<11}  {member.form:<6}  {late:<33}  {one.rate / MB:5.2f}"
            f"  {one.blocked:7.2f} s  {one.printed / MB:10.1f}  {peak.pss:7.1f} {peak.rss:7.1f}"
        )
    return "\n".join(lines) + "\n"


def _rows(seen: list[Seen], ran: Ran, loops: int) -> list[Row]:
    rows = []
    for kind in Kind:
        times = [late.seconds for one in seen for late in one.late if late.kind is kind]
        if times:
            worst, middle = max(times), sorted(times)[len(times) // 2]
            note = f"median {middle * 1000:.0f} ms, {len(times)} times, earliest {min(times) * 1000:.0f} ms"
            good = worst <= _LATE and min(times) > -0.1  # too early is wrong as well
            rows.append(Row("", f"{kind}: late by at most", f"{worst * 1000:.0f} ms", "≤ 1000 ms", good, note))
    pss, rss = max(p.pss for p in ran.peaks), max(p.rss for p in ran.peaks)
    rows.append(Row("", "memory of a loop, PSS", f"{pss:.1f} MB", f"< {_MEMORY:.0f} MB", pss < _MEMORY, "with keeper"))
    rows.append(Row("", "memory of a loop, RSS", f"{rss:.1f} MB", note="counts shared pages for each process"))
    lost = sum(one.lost for one in seen)
    printed = sum(one.printed for one in seen)
    rows.append(Row("", "bytes lost or wrong", f"{lost}", "0", lost == 0, f"of {printed / MB:.0f} MB printed"))
    slowest = min(one.rate for one in seen)
    aim = RATE * 0.95
    rows.append(Row("", "the slowest agent printed", f"{slowest / MB:.2f} MB/s", f"≥ {aim / MB} MB/s", slowest >= aim))
    note = f"{ran.seconds:.0f} s, {loops} loops with their agents"
    rows.append(Row("", "processor time", f"{ran.ours / ran.seconds:.2f} cores", note=note))
    return rows


if __name__ == "__main__":
    sys.exit(main())
