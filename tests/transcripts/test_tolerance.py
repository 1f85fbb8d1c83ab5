"""JSON adapters are tolerant field by field: a field of an unexpected type costs that field, not the line."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from fuzz.damage import FIXTURES, fields, read
from fuzz.seeds import FOLDERS, OWN_SEEDS

from ralph.agents import adapters
from ralph.transcripts.events import Meta, Text, TranscriptEvent
from ralph.transcripts.meta import Kind
from ralph.transcripts.safe import SafeAdapter

#: Formats that exist only as text, and RTF1, where a wrong type makes the event invalid.
_NOT_JSON = {"plain", "rtf1", "kiro", "ollama"}
_VALUES: tuple[Any, ...] = (None, True, 7, "text", [], ["text"], {}, {"key": "text"})
_SAMPLES = 150
#: The lines before the changed one are read again for each sample, so long recordings take too long.
_MOST_LINES = 200


def sessions(name: str) -> list[list[str]]:
    """The recorded sessions of an agent, each as its lines."""
    own = [path.read_text().split("\n\n") for path in OWN_SEEDS.glob(f"{name}.jsonl")]
    found = [text.split("\n") for texts in own for text in texts]
    for folder in FOLDERS.get(name, ()):
        for path in sorted((FIXTURES / folder).glob("*/*.jsonl*")):
            found.append(read(path).decode("utf-8", "replace").split("\n"))
    return [lines for lines in found if len(lines) <= _MOST_LINES and any(map(decoded, lines))]


def decoded(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line) if line[:1] == "{" else None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def read_all(name: str, lines: list[str], changed: str = "") -> list[TranscriptEvent]:
    """The events of a session. No line may fail, and the changed one is valid."""
    adapter = SafeAdapter(adapters.create(name))
    events = adapter.feed_lines(lines) + adapter.flush()
    for event in events:
        assert not is_failure(event, changed), event
    return events


def is_failure(event: TranscriptEvent, line: str) -> bool:
    """Whether the adapter raised an exception, or calls the line invalid although it is valid JSON."""
    if not isinstance(event, Meta) or event.meta.get("kind") != Kind.PARSE_ERROR:
        return False
    return event.meta["line"] == line or event.meta["message"].startswith("adapter ")


def shows_only(events: list[TranscriptEvent], value: Any) -> bool:
    """Whether the events show nothing but the value, so that a line without it has nothing to report."""
    strings = [value, *(holder[key] for holder, key in fields(value))]
    for event in events:
        match event:
            case Text(text=text) | Meta(meta={"kind": Kind.SESSION, "session_id": text}):
                if not any(isinstance(one, str) and text.strip() in one for one in strings):
                    return False
            case _:
                return False
    return True


def is_same_type(one: Any, other: Any) -> bool:
    numbers = (int, float)
    return type(one) is type(other) or (type(one) in numbers and type(other) in numbers)


@pytest.mark.parametrize("name", sorted(set(adapters.names()) - _NOT_JSON))
def test_a_field_of_another_type_costs_that_field_and_not_the_line(name: str) -> None:
    rng = random.Random(name)
    recorded = sessions(name)
    assert recorded, f"no recordings for {name}"
    for _ in range(_SAMPLES):
        lines = rng.choice(recorded)
        at = rng.choice([number for number, line in enumerate(lines) if decoded(line)])
        changed, shorter = json.loads(lines[at]), json.loads(lines[at])
        place = rng.randrange(len(fields(changed)))
        holder, key = fields(changed)[place]
        original = holder[key]
        holder[key] = rng.choice([value for value in _VALUES if not is_same_type(value, original)])
        holder, key = fields(shorter)[place]
        del holder[key]

        line = json.dumps(changed)
        without_line = read_all(name, lines[:at] + lines[at + 1 :])
        if read_all(name, [*lines[:at], line, *lines[at + 1 :]], line) != without_line:
            continue
        # The line makes no difference any more. That is right only if a line without this field makes none either.
        before = events_of(name, lines[:at], lines[at])
        if before and not shows_only(before, original) and read_all(name, lines) != without_line:
            missing = read_all(name, [*lines[:at], json.dumps(shorter), *lines[at + 1 :]])
            assert missing == without_line, f"nothing is reported for {line}, but the original gives {before}"


def events_of(name: str, before: list[str], line: str) -> list[TranscriptEvent]:
    adapter = SafeAdapter(adapters.create(name))
    adapter.feed_lines(before)
    return adapter.feed_lines([line])


@pytest.mark.parametrize("name", ["claude", "cursor"])
def test_a_block_whose_type_is_not_a_string_is_not_shown_as_text(name: str) -> None:
    line = json.dumps({"type": "assistant", "session_id": "s", "message": {"content": [{"type": [["x"], 6]}]}})
    assert not any(isinstance(event, Text) for event in read_all(name, [line], line))


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("claude", {"type": "assistant", "session_id": "s", "message": {"content": 7}}),
        ("claude", {"type": "assistant", "session_id": "s", "message": {"content": [{"type": "text", "text": 7}]}}),
        ("claude", {"type": "assistant", "uuid": "u", "message": {"content": [{"type": "thinking", "thinking": []}]}}),
        ("amp", {"type": "assistant", "session_id": "T-1", "message": {"content": {"key": "text"}}}),
        ("qwen", {"type": "assistant", "session_id": "s", "message": {"content": [{"type": "text", "text": ["x"]}]}}),
        ("cursor", {"type": "assistant", "session_id": "s", "message": {"content": 7}}),
        ("droid", {"type": "message", "role": "assistant", "session_id": "s", "text": 7}),
        ("opencode", {"type": "text", "sessionID": "s", "part": {"type": "text", "text": 7}}),
        ("codex", {"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": [7]}}),
    ],
)  # fmt: skip
def test_a_message_without_text_of_the_right_type_is_kept_as_unknown(name: str, line: dict[str, Any]) -> None:
    start = next(lines for lines in sessions(name) if decoded(lines[0]))[:1]
    before = SafeAdapter(adapters.create(name)).feed_lines(start)
    events = SafeAdapter(adapters.create(name)).feed_lines([*start, json.dumps(line)])[len(before) :]
    assert [event.meta["kind"] for event in events if isinstance(event, Meta) and event.meta["kind"] != "session"] == [
        "unknown"
    ]
