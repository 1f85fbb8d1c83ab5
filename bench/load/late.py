"""How late each deadline was, from what the agents and the journals wrote.

Where a moment is not known, the earlier one is taken for the beginning and the later one for the end: nothing looks
better than it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from bench.load.cast import GRACE, Kind, Member

if TYPE_CHECKING:
    from pathlib import Path


class Late(msgspec.Struct, frozen=True):
    """Seconds after the moment that was due."""

    kind: Kind
    seconds: float


class Seen(msgspec.Struct, frozen=True):
    """What became of one loop."""

    late: list[Late]
    #: bytes that agents printed, and that the journal does not have as they were
    printed: int
    lost: int
    #: the longest time that an agent had to wait for its pipe
    blocked: float
    #: bytes a second, while it was not silent
    rate: float


def look(member: Member, interrupted: float | None) -> Seen:
    agents = _agents(member)
    run = member.repo / ".ralph" / "latest"
    events = _metas(run / "events.jsonl")
    starts = [time for kind, time, _ in events if kind == "iteration_start"]
    ends = [meta for kind, _, meta in events if kind == "iteration_end"]
    if not len(agents) == len(starts) == len(ends) == member.iterations:
        counts = f"{len(agents)} agents, {len(starts)} iterations begun and {len(ends)} ended"
        raise RuntimeError(f"loop {member.number} ({member.kind}): {counts}, not {member.iterations} of each")
    late: list[Late] = []
    lost = 0
    rates = []
    for number, (log, start, end) in enumerate(zip(agents, starts, ends, strict=True), 1):
        asked = _time(log, "term")
        match member.kind:
            case Kind.IDLE:
                due = _time(log, "silent", "wrote") + member.after
            case Kind.RUNTIME:
                due = float(msgspec.json.decode((run / "run.json").read_bytes())["started"]) + member.after
            case Kind.STOP:
                assert interrupted is not None
                due = interrupted
            case Kind.WALL | Kind.GRACE:
                due = start + member.after
        late.append(Late(Kind.WALL if member.kind is Kind.GRACE else member.kind, asked - due))
        if member.kind is Kind.GRACE:
            dead = max(log[-1]["time"], start + float(end["seconds"]))
            late.append(Late(Kind.GRACE, dead - asked - GRACE))
        raw = run / "iterations" / f"{number:04d}" / "stdout.raw"
        lost += _lost(raw, member.material, log[-1]["bytes"])
        until = _time(log, "silent") if member.kind is Kind.IDLE else log[-1]["time"]
        rates.append(log[-1]["bytes"] / (until - log[0]["time"]))
    printed = sum(log[-1]["bytes"] for log in agents)
    return Seen(late, printed, lost, max(log[-1]["blocked"] for log in agents), min(rates))


def _agents(member: Member) -> list[list[dict[str, Any]]]:
    """The log, cut at each start of an agent."""
    agents: list[list[dict[str, Any]]] = []
    for line in member.log.read_bytes().splitlines():
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
    """Bytes that are missing from the journal, or not what was printed."""
    data = material.read_bytes()
    have = wrong = 0
    with raw.open("rb") as file:
        while block := file.read(len(data)):
            wrong += 0 if data.startswith(block) else len(block)
            have += len(block)
    return wrong + max(0, printed - have)
