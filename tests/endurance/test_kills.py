"""The journal is intact after `kill -9` at any moment. `make kills` tries hundreds of moments."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from endurance import chatter, readback
from endurance.kills import LAST, Target, kill_many

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.endurance
@pytest.mark.parametrize("half", [0, 1])
def test_the_journal_is_intact_after_a_kill_at_any_moment(tmp_path: Path, half: int) -> None:
    killed = kill_many(tmp_path, 6, seed=half, workers=1)
    assert [str(one) for one in killed if one.complaints] == []
    assert {one.target for one in killed} == set(Target)


def written(root: Path, iteration: int = 1) -> Path:
    """A correct folder of a run that was killed in its first iteration."""
    events = chatter.lines(0, iteration, LAST)[:3]
    folder = root / "run" / "iterations" / f"{iteration:04d}"
    folder.mkdir(parents=True)
    (folder / "stdout.raw").write_bytes(b"".join(chatter.encode(event) for event in events) + b"@@RAL")
    (root / "run" / "run.json").write_text(json.dumps({"run": "run"}))
    own = {"type": "meta", "meta": {"kind": "iteration_start", "n": iteration}}
    rows = [{"seq": n, "time": 1.0, "iteration": iteration, **event} for n, event in enumerate([own, *events], 1)]
    (root / "run" / "events.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"seq":5,"ti')
    return root / "run"


def test_an_incomplete_last_line_is_allowed(tmp_path: Path) -> None:
    assert readback.check(written(tmp_path), 0, LAST) == []


@pytest.mark.parametrize(
    ("name", "damage", "complaint"),
    [
        ("events.jsonl", lambda data: data.replace(b'"seq": 3', b'"seq": 4'), "has the number 4"),
        ("events.jsonl", lambda data: data.replace(b'{"seq": 2', b'"seq": 2'), "is not JSON"),
        ("events.jsonl", lambda data: data.replace(b"iteration 1 begins", b"iteration 1 begun"), "not those"),
        ("iterations/0001/stdout.raw", lambda data: data[1:], "not the beginning"),
        ("iterations/0001/stdout.raw", lambda data: data[:100], "the bytes of some events are not in stdout.raw"),
        ("run.json", lambda data: data[:-1], "run.json is damaged"),
    ],
)
def test_damage_is_noticed(tmp_path: Path, name: str, damage: object, complaint: str) -> None:
    run = written(tmp_path)
    path = run / name
    data = damage(path.read_bytes())  # type: ignore[operator]
    assert data != path.read_bytes()
    path.write_bytes(data)
    assert complaint in "; ".join(readback.check(run, 0, LAST))
