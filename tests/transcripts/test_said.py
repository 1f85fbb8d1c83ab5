"""Words that come twice are recognised, and only those."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ralph.transcripts.events import Tag, Text, TranscriptEvent
from ralph.transcripts.repeats import Said, Streamed


def shown(events: list[TranscriptEvent]) -> str:
    return "\n".join(e.text for e in events if isinstance(e, Text))


@given(st.lists(st.text(max_size=12), max_size=8))
def test_fragments_and_their_full_copy_are_shown_once_and_whole(fragments: list[str]) -> None:
    words = Streamed(Tag.AI)
    events = [e for fragment in fragments for e in words.fragment(fragment)]
    text = "".join(fragments)
    events += words.full(text) if text else []
    # a newline is implied at the end of an event, so one at the very end of the text is not shown as an empty line
    assert shown(events) == text.removesuffix("\n")


@given(st.lists(st.text(max_size=12), max_size=8))
def test_a_block_that_ended_is_recognised_too(fragments: list[str]) -> None:
    words = Streamed(Tag.AI)
    events = [e for fragment in fragments for e in words.fragment(fragment)] + words.stop()
    text = "".join(fragments)
    assert shown(events) == text.removesuffix("\n")
    assert not text or words.full(text) == []


def test_a_copy_may_be_trimmed_or_joined_but_other_words_are_new() -> None:
    said = Said()
    assert not said.repeats("anything")
    said.add("I'll look first.\n")
    said.add("\nAll done.\n")
    for copy in ("All done.", "I'll look first.All done.", "I'll look first.\n\nAll done.\n", "  "):
        assert said.repeats(copy), copy
    for other in ("I'll look first.", "All done. And more.", "Before. I'll look first. All done."):
        assert not said.repeats(other), other
