"""Reads the journal of a run without using ralph's own code."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


class Record:
    """`root` is None if there is no run."""

    def __init__(self, root: Path | None) -> None:
        self.root = root
        self.events: list[dict[str, Any]] = []
        self.broken: list[str] = []
        self.torn = False
        if root is not None and (root / "events.jsonl").exists():
            self._read(root / "events.jsonl")

    @classmethod
    def newest(cls, repo: Path) -> Record:
        """The newest by the time of its folder: names depend on the clock."""
        runs = [p for p in (repo / ".ralph" / "runs").glob("*") if p.is_dir()]
        return cls(max(runs, key=lambda p: p.stat().st_ctime_ns) if runs else None)

    def _read(self, file: Path) -> None:
        with file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.endswith(b"\n"):
                    self.torn = True
                    return
                try:
                    event = json.loads(line)
                except ValueError:
                    self.broken.append(f"line {number} of events.jsonl is not JSON")
                    continue
                if event.get("type") == "meta":  # the others are not needed, and there may be millions
                    self.events.append(event)
                if event.get("seq") != number:
                    self.broken.append(f"line {number} has the sequence number {event.get('seq')}")

    def metas(self, kind: str) -> list[dict[str, Any]]:
        return [e["meta"] for e in self.events if e["meta"].get("kind") == kind]

    @property
    def end(self) -> dict[str, Any] | None:
        ends = self.metas("run_end")
        return ends[-1] if ends else None

    @property
    def outcomes(self) -> list[str]:
        return [m["outcome"] for m in self.metas("iteration_end")]

    def raw(self, number: int, stream: str) -> Path | None:
        return None if self.root is None else self.root / "iterations" / f"{number:04d}" / f"{stream}.raw"

    def faults(self, *, torn: bool, cut: bool) -> list[str]:
        """What is wrong with it. `torn`: ralph was killed. `cut`: the journal could no longer be written."""
        wrong = self.broken[:3]
        if self.torn and not torn:
            wrong.append("the last line of events.jsonl is incomplete")
        if self.root is not None and self.end is None and not torn and not cut:
            wrong.append("the journal has no end")
        if len(self.metas("run_end")) > 1:
            wrong.append("the run ended twice")
        timed = [*self.metas("iteration_end"), *self.metas("run_end"), *self.metas("wait")]
        wrong += [f"{m['kind']} took {m['seconds']} s" for m in timed if m.get("seconds", 0) < 0]
        if self.root is not None and _is_locked(self.root.parent.parent / "lock"):
            wrong.append("the lock is still held")
        return wrong


def describe(code: int, record: Record, *, end: bool = True) -> str:
    """`2 limit · ok×3`: the exit code, how the run ended (unless `end` is False), the outcomes of its iterations."""
    if record.root is None:
        return f"{code}, nothing run"
    groups = ((name, len(list(same))) for name, same in itertools.groupby(record.outcomes))
    outcomes = " ".join(name if count == 1 else f"{name}×{count}" for name, count in groups)
    ended = f" {record.end['end'] if record.end else 'no end'}" if end else ""
    return f"{code}{ended} · {outcomes or 'none'}"


def _is_locked(path: Path) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
