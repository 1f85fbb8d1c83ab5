"""Compares the agent's own records of a night with the journal of the run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from endurance.readback import Journal
from endurance.worker import SENTINEL

if TYPE_CHECKING:
    from pathlib import Path


class Sum(NamedTuple):
    prompt: int = 0
    completion: int = 0
    cost: float = 0.0

    def plus(self, usage: dict[str, Any] | None) -> Sum:
        given = usage or {}
        return Sum(
            self.prompt + (given.get("prompt_tokens") or 0),
            self.completion + (given.get("completion_tokens") or 0),
            self.cost + (given.get("cost_usd") or 0.0),
        )

    @property
    def tokens(self) -> int:
        return self.prompt + self.completion


class Entry(NamedTuple):
    """One iteration as the agent recorded it."""

    printed: bytes
    #: how many of these bytes the agent had certainly written
    sent: int
    usages: list[dict[str, Any]]
    starts: int


def entries(ledger: Path) -> dict[int, Entry]:
    rows = [json.loads(line) for line in (ledger / "rows.jsonl").read_bytes().splitlines()]
    found = {}
    for number in sorted({row["n"] for row in rows}):
        mine = [row for row in rows if row["n"] == number]
        found[number] = Entry(
            (ledger / f"{number:04d}.out").read_bytes(),
            int((ledger / f"{number:04d}.count").read_bytes() or 0),
            [row["usage"] for row in mine if row["what"] == "usage"],
            sum(row["what"] == "begin" for row in mine),
        )
    return found


def spent(raw: bytes) -> list[dict[str, Any]]:
    """The usage that reached ralph, from complete lines only."""
    found = []
    for line in raw.split(b"\n")[:-1]:
        event = json.loads(line.decode().removeprefix(SENTINEL))
        if event["type"] == "usage":
            found.append(event["usage"])
    return found


def total(journal: Journal) -> Sum:
    """What the run must have counted: all usage that reached it."""
    result = Sum()
    for number in journal.iterations():
        for usage in spent(journal.raw(number)):
            result = result.plus(usage)
    return result


def audit(run: Path, ledger: Path, orphaned: frozenset[int] = frozenset()) -> list[str]:
    """All contradictions between the two, and within the journal.

    In the `orphaned` iterations ralph and its keeper were killed together, so that what was in the pipe is lost.
    """
    journal = Journal(run)
    known = entries(ledger)
    ends = journal.metas("iteration_end")
    numbers = journal.iterations()
    complaints = [*journal.complaints]
    if journal.torn:
        complaints.append(f"events.jsonl ends in the middle of a line: {journal.torn[:80]!r}")
    if numbers != list(range(1, len(numbers) + 1)):
        complaints.append(f"iterations are missing: found {numbers}")
    for kind in ("iteration_start", "iteration_end"):
        said = [meta["n"] for meta in journal.metas(kind)]
        if said != numbers:
            complaints.append(f"not one {kind} for each iteration: {_difference(said, numbers)}")
    for meta in ends:
        complaints += [f"iteration {meta['n']}: {what}" for what in _iteration(journal, meta, known.get(meta["n"]))]
        if (entry := known.get(meta["n"])) and meta["n"] not in orphaned:
            missing = entry.sent - len(journal.raw(meta["n"]))
            complaints += [f"iteration {meta['n']}: {missing} bytes are lost"] if missing > 0 else []
    complaints += _sums(journal, ends)
    return complaints


def _difference(said: list[int], numbers: list[int]) -> str:
    missing, twice = set(numbers) - set(said), sorted({n for n in said if said.count(n) > 1})
    return f"missing {sorted(missing)}, more than once {twice}, in order: {said == sorted(said)}"


def is_cut(end: dict[str, Any]) -> bool:
    """Whether the agent was ended because ralph was."""
    return end["outcome"] == "interrupted" or "ralph died" in end["why"] or "keeper" in end["why"]


def _iteration(journal: Journal, end: dict[str, Any], entry: Entry | None) -> list[str]:
    raw = journal.raw(end["n"])
    cut = is_cut(end)
    if entry is None:
        return [] if cut and not raw else [f"the agent has no record of it, but its outcome is {end['outcome']}"]
    complaints = []
    if entry.starts != 1:
        complaints.append(f"the agent was started {entry.starts} times")
    if not entry.printed.startswith(raw):
        complaints.append("stdout.raw is not what the agent printed")
    if raw != entry.printed and not cut:
        complaints.append(f"{len(entry.printed) - len(raw)} of {len(entry.printed)} bytes are missing")
    reached = spent(raw)
    if reached != entry.usages[: len(reached)] or (not cut and len(reached) != len(entry.usages)):
        complaints.append(f"usage {reached} reached the journal, the agent reported {entry.usages}")
    reported = Sum()
    for usage in reached:
        reported = reported.plus(usage)
    if reported != Sum().plus(end.get("usage")):
        complaints.append(f"it used {reported}, the journal says {Sum().plus(end.get('usage'))}")
    printed = [json.loads(line.removeprefix(SENTINEL)) for line in raw.decode("utf-8", "ignore").split("\n")[:-1]]
    events = journal.of(end["n"])
    if cut:
        events = events[: len(printed)]  # an incomplete last line becomes an event of its own
        printed = printed[: len(events)]
    if events != printed:
        complaints.append(f"{len(printed)} events were printed, {len(events)} are in the journal, and they differ")
    return complaints


def _sums(journal: Journal, ends: list[dict[str, Any]]) -> list[str]:
    complaints = []
    wanted = total(journal)
    running = Sum()
    for meta in ends:
        running = running.plus(meta.get("usage"))
        kept = Sum().plus(meta["state"].get("usage"))
        if kept != running:
            complaints.append(f"after iteration {meta['n']} the run has used {running}, its state says {kept}")
    if running != wanted:
        complaints.append(f"the iterations used {running}, what reached the run is {wanted}")
    run_ends = journal.metas("run_end")
    if not run_ends:
        return [*complaints, "the run has no summary"]
    if (said := Sum().plus(run_ends[-1]["usage"])) != wanted:
        complaints.append(f"the summary says {said}, what reached the run is {wanted}")
    if run_ends[-1]["iterations"] != len(journal.iterations()):
        complaints.append(f"the summary says {run_ends[-1]['iterations']} iterations of {len(journal.iterations())}")
    return complaints


def statement(run: Path, ledger: Path) -> list[str]:
    """Both records in a few lines, for people to read."""
    journal = Journal(run)
    known = entries(ledger)
    reported = Sum()
    for entry in known.values():
        for usage in entry.usages:
            reported = reported.plus(usage)
    said = Sum().plus((journal.metas("run_end") or [{}])[-1].get("usage"))
    ends = journal.metas("iteration_end")
    uncounted = sum(meta.get("counted") is False for meta in ends)
    cut = [meta for meta in ends if is_cut(meta)]
    within = sum("usage" in meta for meta in cut)
    return [
        f"the agent reported {reported.tokens:,} tokens and ${reported.cost:.6f}",
        f"{reported.tokens - said.tokens:,} of these tokens never reached ralph",
        f"the run's summary: {said.tokens:,} tokens and ${said.cost:.6f}, {uncounted} of {len(ends)} not counted",
        f"{len(cut)} iterations were cut short, {within} of them after they had reported usage",
        f"{len(journal.events):,} events, {sum(len(journal.raw(n)) for n in journal.iterations()):,} raw bytes",
    ]
