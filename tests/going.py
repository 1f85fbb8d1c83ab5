"""A real `ralph run` in the background, and its journal while it runs."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from processes import eventually
from ralph.journal.layout import RunPaths
from ralph.journal.lock import is_locked
from ralph.journal.requests import Requests

if TYPE_CHECKING:
    from pathlib import Path


class Going:
    """Starts at once. `close` ends a run that a failed test left behind."""

    def __init__(self, repo: Path, command: str, *flags: str) -> None:
        runs = repo / ".ralph" / "runs"
        before = set(runs.glob("*"))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ralph", "run", "--agent-cmd", command, *flags],
            cwd=repo,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        assert eventually(lambda: bool(set(runs.glob("*")) - before) or self.process.poll() is not None)
        new = set(runs.glob("*")) - before
        assert new, self.process.communicate()[0]
        (self.root,) = new
        assert eventually(lambda: bool(self.metas("run_start")))

    @property
    def run_id(self) -> str:
        return self.root.name

    @property
    def events(self) -> list[dict[str, Any]]:
        try:
            lines = (self.root / "events.jsonl").read_bytes().split(b"\n")[:-1]
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines]

    def metas(self, kind: str) -> list[dict[str, Any]]:
        return [e["meta"] for e in self.events if e["type"] == "meta" and e["meta"].get("kind") == kind]

    def reaches(self, kind: str, count: int = 1) -> None:
        """Waits until the journal has this many events of a kind."""
        assert eventually(lambda: len(self.metas(kind)) >= count), (kind, self.events)

    @property
    def requests(self) -> Requests:
        """The same requests that `ralph pause`, `stop` and `steer` write, without starting a process."""
        return Requests(RunPaths(self.root))

    def says(self, text: str) -> None:
        """Waits until the agent has printed this text."""
        assert eventually(lambda: any(e.get("text") == text for e in self.events)), self.events

    def prompt(self, iteration: int) -> str:
        return (self.root / "iterations" / f"{iteration:04d}" / "prompt.md").read_text()

    @property
    def outcomes(self) -> list[str]:
        return [m["outcome"] for m in self.metas("iteration_end")]

    @property
    def end(self) -> dict[str, Any]:
        (end,) = self.metas("run_end")
        return end

    def ended(self, seconds: float = 30) -> tuple[int, str]:
        """Waits for its end; its exit code and everything it printed."""
        out, _ = self.process.communicate(timeout=seconds)
        return self.process.returncode, out

    def kill(self) -> None:
        """`kill -9`; returns when everything that it started has ended."""
        self.process.kill()
        self.process.wait()
        assert eventually(lambda: not is_locked(self.root / "lock"))

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
