"""A short form of the simulated night of `make night`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from endurance import account, ceiling, night

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.endurance
def test_a_run_that_is_interrupted_and_resumed_completes_and_loses_nothing(tmp_path: Path) -> None:
    spent = night.run_night(tmp_path, seed=1, iterations=30, kills=3)
    assert spent.complaints == []
    assert spent.code == 0
    assert len(spent.interruptions) >= 3


@pytest.mark.endurance
@pytest.mark.parametrize("which", ["tokens", "cost"])
def test_a_budget_is_reached_at_the_right_iteration_across_resumes(tmp_path: Path, which: str) -> None:
    assert ceiling.reach(tmp_path, 1, which).complaints == []


USAGE = {"prompt_tokens": 10, "completion_tokens": 2, "cost_usd": 0.5}


def event(**fields: Any) -> str:
    return json.dumps(fields)


@pytest.fixture
def records(tmp_path: Path) -> tuple[Path, Path]:
    """A run of one iteration and the agent's records of it, which agree."""
    run, ledger = tmp_path / "run", tmp_path / "ledger"
    (run / "iterations" / "0001").mkdir(parents=True)
    ledger.mkdir()
    printed = f"@@RALPH@@ {event(type='usage', usage=USAGE)}\n"
    (ledger / "0001.out").write_text(printed)
    (ledger / "0001.count").write_text(str(len(printed)))
    rows = [{"n": 1, "what": "begin"}, {"n": 1, "what": "usage", "usage": USAGE}]
    (ledger / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run / "iterations" / "0001" / "stdout.raw").write_text(printed)
    (run / "run.json").write_text(event(run="run"))
    end = {"kind": "iteration_end", "n": 1, "outcome": "ok", "why": "", "usage": USAGE, "state": {"usage": USAGE}}
    bodies = [
        {"type": "meta", "meta": {"kind": "iteration_start", "n": 1}},
        {"type": "usage", "usage": USAGE},
        {"type": "meta", "meta": end},
        {"type": "meta", "meta": {"kind": "run_end", "usage": USAGE, "iterations": 1}},
    ]
    lines = [json.dumps({"seq": n, "time": 1.0, "iteration": 1, **body}) for n, body in enumerate(bodies, 1)]
    (run / "events.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return run, ledger


def test_records_that_agree_give_no_complaint(records: tuple[Path, Path]) -> None:
    assert account.audit(*records) == []


@pytest.mark.parametrize(
    ("name", "damage", "complaint"),
    [
        ("run/events.jsonl", lambda s: s.replace('"run_end", "usage": {"prompt_tokens": 10', "X"), "is not JSON"),
        (
            "run/events.jsonl",
            lambda s: s.replace(
                '"kind": "run_end", "usage": {"prompt_tokens": 10', '"kind": "run_end", "usage": {"x": 1'
            ),
            "the summary says",
        ),
        (
            "run/events.jsonl",
            lambda s: s.replace('"state": {"usage": {"prompt_tokens": 10', '"state": {"usage": {"x": 1'),
            "its state says",
        ),
        ("run/events.jsonl", lambda s: s.replace('"seq": 3', '"seq": 2'), "has the number 2"),
        ("run/events.jsonl", lambda s: s + '{"seq": 5', "in the middle of a line"),
        ("run/iterations/0001/stdout.raw", lambda s: "", "bytes are missing"),
        ("ledger/0001.count", lambda s: s + "0", "bytes are lost"),
        ("ledger/0001.out", lambda s: "other\n" + s, "not what the agent printed"),
        ("ledger/rows.jsonl", lambda s: s + s, "started 2 times"),
    ],
)
def test_contradictions_are_noticed(
    records: tuple[Path, Path], name: str, damage: Callable[[str], str], complaint: str
) -> None:
    path = records[0].parent / name
    before = path.read_text()
    path.write_text(damage(before))
    assert path.read_text() != before
    assert complaint in "; ".join(account.audit(*records))
