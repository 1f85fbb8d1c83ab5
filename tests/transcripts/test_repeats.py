"""Copies of earlier text are recognised, and nothing else is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from ralph.transcripts import deltas, repeats
from ralph.transcripts.events import Tag, Text, TranscriptEvent
from ralph.transcripts.repeats import Said, Streamed

if TYPE_CHECKING:
    import pytest

FRAGMENTS = st.lists(st.text(max_size=12), max_size=8)


def shown(events: list[TranscriptEvent]) -> str:
    return "\n".join(e.text for e in events if isinstance(e, Text))


@given(FRAGMENTS)
def test_fragments_and_their_full_copy_are_shown_once_and_complete(fragments: list[str]) -> None:
    words = Streamed(Tag.AI)
    events = [e for fragment in fragments for e in words.fragment(fragment)]
    text = "".join(fragments)
    events += words.full(text) if text else []
    # A newline is implied at the end of an event, so one at the very end of the text does not show as an empty line.
    assert shown(events) == text.removesuffix("\n")


@given(FRAGMENTS, st.text(min_size=1, max_size=12))
def test_what_the_full_copy_adds_is_shown(fragments: list[str], more: str) -> None:
    words = Streamed(Tag.AI)
    events = [e for fragment in fragments for e in words.fragment(fragment)]
    text = "".join(fragments) + more
    assert shown(events + words.full(text)).removesuffix("\n") == text.removesuffix("\n")


@given(FRAGMENTS)
def test_a_finished_block_is_recognised_too(fragments: list[str]) -> None:
    words = Streamed(Tag.AI)
    events = [e for fragment in fragments for e in words.fragment(fragment)] + words.stop()
    text = "".join(fragments)
    assert shown(events) == text.removesuffix("\n")
    assert not text or words.full(text) == []


def test_each_block_has_one_copy() -> None:
    words = Streamed(Tag.AI)
    for text in ("Yes.", "Yes.", "No."):
        words.fragment(text)
        words.stop()
    assert [words.full(text) for text in ("Yes.", " No.\n", "Yes.")] == [[], [], []]
    assert words.full("Yes.") == [Text(Tag.AI, "Yes.")]


def test_a_new_message_is_shown_even_if_it_says_the_same() -> None:
    words = Streamed(Tag.AI)
    words.fragment("Yes.")
    assert words.restart() == [Text(Tag.AI, "Yes.")]
    assert words.full("Yes.") == [Text(Tag.AI, "Yes.")]


def test_blocks_without_a_copy_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deltas, "MAX_HELD", 1000)
    monkeypatch.setattr(repeats, "_KEPT", 1000)
    words = Streamed(Tag.AI)
    for number in range(500):
        words.fragment(f"block {number} " * 10)
        words.stop()
    assert sum(map(len, words._finished)) <= 1000
    assert words.full("block 499 " * 10) == []
    assert words.full("block 0 " * 10) != []


def test_a_copy_may_be_trimmed_or_joined_but_other_text_is_new() -> None:
    said = Said()
    assert not said.repeats("anything")
    said.add("I'll look first.\n")
    said.add("\nAll done.\n")
    for copy in ("All done.", "I'll look first.All done.", "I'll look first.\n\nAll done.\n", "  "):
        assert said.repeats(copy), copy
    for other in ("I'll look first.", "All done. And more.", "Before. I'll look first. All done."):
        assert not said.repeats(other), other


def test_a_copy_of_everything_is_recognised_even_if_the_start_was_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "_KEPT", 100)
    messages = [f"This is message {number}.\n" for number in range(50)]
    said = Said()
    for message in messages:
        said.add(message)
    assert said.repeats("".join(messages))
    assert said.knows(messages[-1])
    assert not said.knows(messages[0])
