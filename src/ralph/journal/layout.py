"""The names of the files in `.ralph/`. No other module knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pathlib import Path

STATE_DIR = ".ralph"


class RunPaths(msgspec.Struct, frozen=True):
    """The files of one run."""

    root: Path

    @property
    def run_id(self) -> str:
        return self.root.name

    @property
    def run_json(self) -> Path:
        return self.root / "run.json"

    @property
    def events(self) -> Path:
        return self.root / "events.jsonl"

    @property
    def baseline(self) -> Path:
        """A snapshot of the working tree before the run."""
        return self.root / "baseline"

    @property
    def lock(self) -> Path:
        """Held as long as the run's process lives."""
        return self.root / "lock"

    @property
    def control(self) -> Path:
        """Requests to the run from other terminals."""
        return self.root / "control"

    def iteration(self, number: int) -> Path:
        return self.root / "iterations" / f"{number:04d}"


class StatePaths(msgspec.Struct, frozen=True):
    """The `.ralph` folder of a working directory."""

    workdir: Path

    @property
    def root(self) -> Path:
        return self.workdir / STATE_DIR

    @property
    def runs(self) -> Path:
        return self.root / "runs"

    @property
    def latest(self) -> Path:
        return self.root / "latest"

    @property
    def lock(self) -> Path:
        return self.root / "lock"

    @property
    def agent_events(self) -> Path:
        """Where the orchestrator convention looks for the events of the newest run."""
        return self.workdir / ".agent" / "events.jsonl"
