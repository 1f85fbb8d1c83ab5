"""Usual lines are decoded into types, others as objects: all ways give the same events, line by line or at once."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "recordings"))

from recording import Recording, find

from ralph.agents import adapters as registry
from ralph.transcripts.events import Meta, Text, TranscriptEvent, encode
from ralph.transcripts.json_lines import JsonAdapter
from ralph.transcripts.safe import SafeAdapter

FIXTURES = Path(__file__).parent.parent / "fixtures"
LONGEST = 200_000
RECORDINGS = [r for r in find(FIXTURES) if "json" in r.path.suffixes[0]]
#: What a field may hold in a release that nobody has seen.
STRANGE = (None, 0, 7, -1.5, True, "", "x", [], {}, [{}], ["x"], {"type": "text"}, {"text": 1})


def objects(recording: Recording) -> list[str]:
    """The lines that are objects, as short as they come."""
    lines = recording.stdout().decode("utf-8", "replace").split("\n")
    return [line for line in lines if line.startswith("{") and line.endswith("}") and len(line) < LONGEST]


def as_objects(agent: str, lines: list[str]) -> list[bytes]:
    adapter = registry.create(agent)
    assert isinstance(adapter, JsonAdapter)
    adapter.usual = lambda: None  # type: ignore[method-assign]
    return [encode(event) for line in lines for event in adapter.feed(line)] + [encode(e) for e in adapter.flush()]


def one_by_one(agent: str, lines: list[str]) -> list[bytes]:
    adapter = registry.create(agent)
    return [encode(event) for line in lines for event in adapter.feed(line)] + [encode(e) for e in adapter.flush()]


def at_once(agent: str, lines: list[str], rng: random.Random) -> list[bytes]:
    adapter = SafeAdapter(registry.create(agent))
    events = []
    while lines:
        size = rng.choice((1, 2, 5, 50, 500))
        events += adapter.feed_lines(lines[:size])
        lines = lines[size:]
    return [encode(event) for event in events + adapter.flush()]


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda r: r.id)
def test_all_ways_give_the_same(recording: Recording) -> None:
    lines = objects(recording)
    expected = as_objects(recording.agent, lines)
    assert one_by_one(recording.agent, lines) == expected
    assert at_once(recording.agent, lines, random.Random(recording.id)) == expected


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
def test_all_ways_give_the_same_for_lines_that_nobody_has_seen(recording: Recording) -> None:
    rng = random.Random(recording.id)
    for _ in range(8):
        values = [json.loads(line) for line in objects(recording)]
        # the first lines tell that it is this format at all
        values[1:] = [changed(v, rng) if isinstance(v, dict) and rng.random() < 0.5 else v for v in values[1:]]
        lines = [json.dumps(value, ensure_ascii=False, separators=(",", ":")) for value in values]
        expected = as_objects(recording.agent, lines)
        assert one_by_one(recording.agent, lines) == expected
        assert at_once(recording.agent, lines, rng) == expected


def test_a_bug_with_usual_lines_loses_none() -> None:
    adapter = registry.create("gemini")
    assert isinstance(adapter, JsonAdapter)
    outer = SafeAdapter(adapter)
    begin = '{"type":"init","timestamp":"t","session_id":"s","model":"m"}'
    said = '{"type":"message","timestamp":"t","role":"assistant","content":"%s\\n","delta":true}'
    outer.feed_lines([begin])
    usual = adapter.usual
    assert usual is not None

    def broken() -> tuple[object, object]:
        found = usual()
        assert found is not None

        def take(line: object, events: list[TranscriptEvent]) -> bool:
            if getattr(line, "content", "").startswith("bad"):
                raise KeyError(line)
            return found[1](line, events)

        return found[0], take

    adapter.usual = broken  # type: ignore[method-assign, assignment]
    events = outer.feed_lines([said % "1", said % "2", said % "bad", said % "4"])
    texts = [event.text for event in events if isinstance(event, Text)]
    assert texts == ["1", "2", said % "bad", "4"]
    assert [event.meta["kind"] for event in events if isinstance(event, Meta)] == ["parse_error", "parse_error"]
