"""How late each deadline was, from what the agents and the journals wrote.

Where a moment is not known exactly, it takes the earliest possible start and the latest possible end, so that nothing
looks better than it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from bench.load.loops import GRACE, Kind, Loop

if TYPE_CHECKING:
    from pathlib import Path


class Lateness(msgspec.Struct, frozen=True):
    """By how many seconds a deadline was late."""

    kind: Kind
    seconds: float


class LoopResult(msgspec.Struct, frozen=True):
    """The result of one loop."""

    late: list[Lateness]
    #: bytes that agents printed, and bytes that are missing or wrong in the journal
    printed: int
    lost: int
    #: the longest time that an agent had to wait for its pipe
    blocked: float
    #: bytes per second while it printed
    rate: float


def read_result(loop: Loop, interrupted: float | None) -> LoopResult:
    agents = _agents(loop)
    run = loop.repo / ".ralph" / "latest"
    events = _metas(run / "events.jsonl")
    starts = [time for kind, time, _ in events if kind == "iteration_start"]
    ends = [meta for kind, _, meta in events if kind == "iteration_end"]
    if not len(agents) == len(starts) == len(ends) == loop.iterations:
        counts = f"{len(agents)} agents, {len(starts)} iterations started and {len(ends)} ended"
        raise RuntimeError(f"loop {loop.number} ({loop.kind}): {counts}, not {loop.iterations} of each")
    late: list[Lateness] = []
    lost = 0
    rates = []
    for number, (log, start, end) in enumerate(zip(agents, starts, ends, strict=True), 1):
        asked = _time(log, "term")
        match loop.kind:
            case Kind.IDLE:
                due = _time(log, "silent", "wrote") + loop.after
            case Kind.RUNTIME:
                due = float(msgspec.json.decode((run / "run.json").read_bytes())["started"]) + loop.after
            case Kind.STOP:
                assert interrupted is not None
                due = interrupted
            case Kind.WALL | Kind.GRACE:
                due = start + loop.after
        late.append(Lateness(Kind.WALL if loop.kind is Kind.GRACE else loop.kind, asked - due))
        if loop.kind is Kind.GRACE:
            dead = max(log[-1]["time"], start + float(end["seconds"]))
            late.append(Lateness(Kind.GRACE, dead - asked - GRACE))
        raw = run / "iterations" / f"{number:04d}" / "stdout.raw"
        lost += _lost(raw, loop.material, log[-1]["bytes"])
        until = _time(log, "silent") if loop.kind is Kind.IDLE else log[-1]["time"]
        rates.append(log[-1]["bytes"] / (until - log[0]["time"]))
    printed = sum(log[-1]["bytes"] for log in agents)
    return LoopResult(late, printed, lost, max(log[-1]["blocked"] for log in agents), min(rates))


def _agents(loop: Loop) -> list[list[dict[str, Any]]]:
    """The log, split at each start of an agent."""
    agents: list[list[dict[str, Any]]] = []
    for line in loop.log.read_bytes().splitlines():
        row = msgspec.json.decode(line)
        if row["what"] == "start":
            agents.append([])
        agents[-1].append(row)
    return agents


def _time(log: list[dict[str, Any]], what: str, which: str = "time") -> float:
    return float(next(row[which] for row in log if row["what"] == what))


def _metas(path: Path) -> list[tuple[str, float, dict[str, Any]]]:
    found = []
    with path.open("rb") as lines:
        for line in lines:
            if b'"type":"meta"' in line[:120]:
                event = msgspec.json.decode(line)
                found.append((str(event["meta"].get("kind")), float(event["time"]), event["meta"]))
    return found


def _lost(raw: Path, material: Path, printed: int) -> int:
    """The number of bytes that are missing from the journal or differ from what was printed."""
    data = material.read_bytes()
    have = wrong = 0
    with raw.open("rb") as file:
        while block := file.read(len(data)):
            wrong += 0 if data.startswith(block) else len(block)
            have += len(block)
    return wrong + max(0, printed - have)
