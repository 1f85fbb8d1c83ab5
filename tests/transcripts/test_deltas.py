"""Fragments become lines; nothing is lost or shown twice, however long a line is."""

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


@given(FRAGMENTS)
def test_fragments_are_shown_as_the_lines_that_they_form(fragments: list[str]) -> None:
    text = "".join(fragments)
    lines, streamed = DeltaLines(Tag.AI), Streamed(Tag.AI)
    events = [event for fragment in fragments for event in lines.feed(fragment)]
    same = [event for fragment in fragments for event in streamed.fragment(fragment)]
    assert (lines.shown.length, lines.begun) == (len(text), bool(text))
    assert shown(events + lines.flush()) == text.removesuffix("\n")
    assert shown(same + streamed.stop()) == text.removesuffix("\n")
    assert not lines.begun


@given(FRAGMENTS)
def test_a_line_is_shown_as_soon_as_it_is_complete(fragments: list[str]) -> None:
    lines = DeltaLines(Tag.AI)
    events: list[TranscriptEvent] = []
    for number, fragment in enumerate(fragments, 1):
        events += lines.feed(fragment)
        assert shown(events) == "".join(fragments[:number]).rpartition("\n")[0]


@pytest.mark.parametrize("kind", [DeltaLines, Streamed])
def test_a_line_without_end_is_shown_in_pieces(
    kind: type[DeltaLines | Streamed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deltas, "MAX_HELD", 1000)
    lines = kind(Tag.AI)
    feed, end = (lines.feed, lines.flush) if isinstance(lines, DeltaLines) else (lines.fragment, lines.stop)
    events = [event for _ in range(1000) for event in feed("abcde")]
    assert len(events) == 4
    assert "".join(e.text for e in events + end() if isinstance(e, Text)) == "abcde" * 1000
