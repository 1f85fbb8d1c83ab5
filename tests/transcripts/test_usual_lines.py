"""Usual lines are decoded into types, others as objects: both ways must give the same events.

A blank after a colon is the same JSON, but not how these agents write it: such a line is read as an object.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "recordings"))

from recording import Recording, find

from ralph.transcripts import registry
from ralph.transcripts.events import encode

FIXTURES = Path(__file__).parent.parent / "fixtures"
AGENTS = ("amp", "claude", "cline", "cursor-agent", "droid", "gemini", "goose", "kimi-cli", "kimi-code", "qwen")
LONGEST = 200_000
RECORDINGS = [r for r in find(FIXTURES) if r.agent in AGENTS and "json" in r.path.suffixes[0]]
#: What a field may hold in a release that nobody has seen.
STRANGE = (None, 0, 7, -1.5, True, "", "x", [], {}, [{}], ["x"], {"type": "text"}, {"text": 1})


def objects(recording: Recording) -> list[str]:
    """The lines that are objects, as short as they come."""
    lines = recording.stdout().decode("utf-8", "replace").split("\n")
    return [line for line in lines if line.startswith("{") and line.endswith("}") and len(line) < LONGEST]


def events(agent: str, lines: list[str]) -> list[bytes]:
    adapter = registry.create(agent)
    return [encode(event) for line in lines for event in adapter.feed(line)] + [encode(e) for e in adapter.flush()]


def spaced(line: str) -> str:
    return json.dumps(json.loads(line), ensure_ascii=False)


def compact(line: str) -> str:
    return json.dumps(json.loads(line), ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda r: r.id)
def test_both_ways_give_the_same(recording: Recording) -> None:
    lines = [compact(line) for line in objects(recording)]
    assert events(recording.agent, lines) == events(recording.agent, [spaced(line) for line in lines])


def changed(value: object, rng: random.Random) -> object:
    """The same with one field, somewhere in it, of another type."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        return {**value, key: changed(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        at = rng.randrange(len(value))
        return [changed(v, rng) if i == at else v for i, v in enumerate(value)]
    return rng.choice(STRANGE)


@pytest.mark.parametrize("recording", [r for r in RECORDINGS if "success" in r.name], ids=lambda r: r.id)
def test_both_ways_give_the_same_for_lines_that_nobody_has_seen(recording: Recording) -> None:
    rng = random.Random(recording.id)
    for _ in range(8):
        values = [json.loads(line) for line in objects(recording)]
        # the first lines tell that it is this format at all
        values[1:] = [changed(v, rng) if isinstance(v, dict) and rng.random() < 0.5 else v for v in values[1:]]
        lines = [compact(json.dumps(value)) for value in values]
        assert events(recording.agent, lines) == events(recording.agent, [spaced(line) for line in lines])
