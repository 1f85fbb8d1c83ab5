"""Fragments become lines; long lines are joined on the way, and nothing of them is lost or doubled."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.transcripts import deltas
from ralph.transcripts.deltas import DeltaLines
from ralph.transcripts.events import Tag, Text, TranscriptEvent
from ralph.transcripts.repeats import Streamed

FRAGMENTS = st.lists(st.text(st.sampled_from("ab\n"), max_size=4), max_size=40)


def shown(events: list[TranscriptEvent]) -> str:
    return "\n".join(e.text for e in events if isinstance(e, Text))


@given(FRAGMENTS, st.sampled_from([1, 2, 3, 7, 1024]))
def test_however_often_fragments_are_joined_the_lines_are_the_same(fragments: list[str], most: int) -> None:
    text = "".join(fragments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deltas, "MOST_FRAGMENTS", most)
        lines, words = DeltaLines(Tag.AI), Streamed(Tag.AI)
        events: list[TranscriptEvent] = []
        twice: list[TranscriptEvent] = []
        for fragment in fragments:
            lines.add(fragment, events)
            words.add(fragment, twice)
        assert lines.length == len(text)
        assert lines.begun is bool(text)
        assert "".join(words.parts) == text
        assert shown(events + lines.flush()) == text.removesuffix("\n")
        assert shown(twice + words.stop()) == text.removesuffix("\n")
        assert not lines.begun


@pytest.mark.parametrize("kind", [DeltaLines, Streamed])
def test_a_line_without_end_is_handed_on_and_not_kept(
    kind: type[DeltaLines | Streamed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deltas, "MOST_FRAGMENTS", 10)
    monkeypatch.setattr(deltas, "MAX_HELD", 1000)
    lines = kind(Tag.AI)
    events: list[TranscriptEvent] = []
    for _ in range(1000):
        lines.add("abcde", events)
    rest = lines.flush() if isinstance(lines, DeltaLines) else lines.stop()
    assert len(events) == 4
    assert "".join(e.text for e in events + rest if isinstance(e, Text)) == "abcde" * 1000
