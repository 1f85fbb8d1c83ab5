"""Checks the folder of a run without using ralph's own code. Each contradiction is a complaint in words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from endurance import chatter

if TYPE_CHECKING:
    from pathlib import Path

#: Kinds of `meta` that ralph writes itself.
OURS = {"run_start", "run_resume", "iteration_start", "iteration_end", "verify", "wait", "notice", "run_end", "event"}


class Journal:
    """The events of one run, and what is wrong with their file."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.events: list[dict[str, Any]] = []
        self.complaints: list[str] = []
        path = root / "events.jsonl"
        data = path.read_bytes() if path.exists() else b""
        *whole, self.torn = data.split(b"\n")
        for number, line in enumerate(whole, 1):
            try:
                event = json.loads(line)
            except ValueError:
                self.complaints.append(f"line {number} of events.jsonl is not JSON: {line[:80]!r}")
                continue
            if event["seq"] != number:
                self.complaints.append(f"line {number} of events.jsonl has the number {event['seq']}")
            self.events.append(event)
        try:
            facts = json.loads((root / "run.json").read_bytes())
            if facts["run"] != root.name:
                self.complaints.append(f"run.json belongs to another run: {facts['run']}")
        except FileNotFoundError:
            pass  # ralph was killed before it wrote it
        except ValueError as error:
            self.complaints.append(f"run.json is damaged: {error}")

    def metas(self, kind: str) -> list[dict[str, Any]]:
        return [e["meta"] for e in self.events if e["type"] == "meta" and e["meta"].get("kind") == kind]

    def iterations(self) -> list[int]:
        return sorted(int(folder.name) for folder in (self.root / "iterations").glob("[0-9]*"))

    def of(self, iteration: int) -> list[dict[str, Any]]:
        """The events that come from the agent, without the fields that the journal adds."""
        return [
            {k: v for k, v in event.items() if k not in ("seq", "time", "iteration")}
            for event in self.events
            if event["iteration"] == iteration and not (event["type"] == "meta" and event["meta"]["kind"] in OURS)
        ]

    def raw(self, iteration: int, name: str = "stdout.raw") -> bytes:
        path = self.root / "iterations" / f"{iteration:04d}" / name
        return path.read_bytes() if path.exists() else b""


def check(root: Path, seed: int, last: int) -> list[str]:
    """What is wrong with a killed run of the chatty agent; empty if nothing is."""
    journal = Journal(root)
    complaints = [*journal.complaints]
    ended = {meta["n"]: meta["outcome"] for meta in journal.metas("iteration_end")}
    for iteration in journal.iterations():
        complaints += [f"iteration {iteration}: {what}" for what in _iteration(journal, iteration, seed, last, ended)]
    begun = [meta["n"] for meta in journal.metas("iteration_start")]
    if begun != list(range(1, len(begun) + 1)):
        complaints.append(f"iterations began in this order: {begun}")
    if not set(begun) <= set(journal.iterations()):
        complaints.append(f"iterations {begun} began, but there are folders for {journal.iterations()}")
    return complaints


def _iteration(journal: Journal, iteration: int, seed: int, last: int, ended: dict[int, str]) -> list[str]:
    expected = chatter.lines(seed, iteration, last)
    printed = [chatter.encode(event) for event in expected]
    whole, whole_errors = b"".join(printed), "".join(f"{line}\n" for line in chatter.errors(seed, iteration)).encode()
    raw, errors = journal.raw(iteration), journal.raw(iteration, "stderr.raw")
    complaints = []
    if not whole.startswith(raw):
        complaints.append("stdout.raw is not the beginning of what the agent printed")
    if not whole_errors.startswith(errors):
        complaints.append("stderr.raw is not the beginning of what the agent printed")
    if ended.get(iteration) == "ok" and (raw, errors) != (whole, whole_errors):
        complaints.append(f"the outcome is ok, but {len(whole) - len(raw)} bytes are missing")
    out, err = [], []
    for event in journal.of(iteration):
        (err if event["type"] == "text" and event["tag"] == "SYS" else out).append(event)
    if iteration in ended and not raw.endswith(b"\n") and raw:
        # The agent was killed in the middle of a line, and ralph reads that as half an event.
        half = raw[raw.rfind(b"\n") + 1 :].decode("utf-8", "replace")
        if not half.startswith(chatter.SENTINEL):
            out = out[:-1]
        else:
            out, err = out[:-1], [event for event in err if event["text"] != half]
    if out != expected[: len(out)]:
        complaints.append("the events are not those that the agent printed")
    if len(raw) < sum(len(line) for line in printed[: len(out)]):
        complaints.append("the bytes of some events are not in stdout.raw")
    lines = [event["text"] for event in err]
    if lines != chatter.errors(seed, iteration)[: len(lines)] and not (iteration in ended and whole_errors != errors):
        complaints.append("the events of stderr are not what the agent printed")
    if iteration in ended and ended[iteration] == "ok" and len(out) != len(expected):
        complaints.append(f"the outcome is ok, but {len(expected) - len(out)} events are missing")
    return complaints
