"""The remembered ends of texts that were passed on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ralph.masking.events import EventMasker
from ralph.masking.masker import Masker
from ralph.masking.text_ends import CONTEXT, TextEnds
from ralph.transcripts.events import Tag, Text, ToolEnd, ToolOutput, ToolRef, ToolResult, ToolStatus, TranscriptEvent

SECRET = "q8W3-e7R2-t6Y1-u5I0"

texts = st.text("abc", max_size=3) | st.integers(60, 70).map(lambda n: "".join(chr(97 + i % 26) for i in range(n)))
events = st.one_of(
    st.builds(Text, st.sampled_from([Tag.AI, Tag.THINK]), texts),
    st.builds(lambda tool, text: ToolOutput(ToolRef(tool), text), st.sampled_from(["a", "b", "AI"]), texts),
    st.builds(lambda tool: ToolEnd(ToolResult(tool, ToolStatus.OK)), st.sampled_from(["a", "b", "AI"])),
)


@given(st.lists(st.lists(events, max_size=6), max_size=6))
def test_the_ends_of_all_texts_are_kept_except_those_of_ended_tools(batches: list[list[TranscriptEvent]]) -> None:
    text_ends, wanted = TextEnds(4), dict[str, str]()
    for batch in batches:
        ended = set()
        ends = set()
        for event in batch:
            match event:
                case Text(tag, text):
                    wanted[tag.value] = wanted.get(tag.value, "") + text
                    ends.add(text[-4:])
                case ToolOutput(tool, text):
                    wanted[f"tool {tool.id}"] = wanted.get(f"tool {tool.id}", "") + text
                    ends.add(text[-4:])
                case ToolEnd(tool=tool):
                    wanted.pop(f"tool {tool.id}", None)
                    ended.add(f"tool {tool.id}")
        assert text_ends.scan(batch) == ends
        assert set(text_ends.keep()) == ended
    assert {k: v for k, v in text_ends.take().items() if v} == {k: v[-CONTEXT:] for k, v in wanted.items() if v}
    assert text_ends.take() == {}


def test_tools_that_never_end_do_not_fill_the_memory() -> None:
    text_ends = TextEnds(4)
    for number in range(5000):
        text_ends.scan([ToolOutput(ToolRef(str(number)), "x" * 100_000)])
        text_ends.keep()
    kept = text_ends.take()
    assert len(kept) < 1000
    assert set(map(len, kept.values())) == {CONTEXT}
    assert "tool 4999" in kept


def test_a_secret_is_masked_even_if_it_started_long_ago() -> None:
    """Its first characters come in a tool's output, then another tool prints a lot, then the rest comes."""
    masked = EventMasker(Masker({SECRET: "MY_KEY"}))
    masked.expect_pieces(True)
    masked.encode([ToolOutput(ToolRef("a"), f"the key is {SECRET[:3]}")])
    for _ in range(50):
        masked.encode([ToolOutput(ToolRef("b"), "some words of another")] * 20)
    shown, lines = masked.encode([ToolOutput(ToolRef("a"), f"{SECRET[3:]} and that is all\n")])
    assert SECRET[3:].encode() not in lines
    assert [event.text for event in shown if isinstance(event, ToolOutput)] == [" and that is all\n"]
