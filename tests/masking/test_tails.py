"""What is remembered of texts that have gone out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ralph.masking.events import EventMasker
from ralph.masking.masker import Masker
from ralph.masking.tails import CONTEXT, Tails
from ralph.transcripts.events import Tag, Text, ToolEnd, ToolOutput, ToolRef, ToolResult, ToolStatus, TranscriptEvent

SECRET = "q8W3-e7R2-t6Y1-u5I0"

texts = st.text("abc", max_size=3) | st.integers(60, 70).map(lambda n: "".join(chr(97 + i % 26) for i in range(n)))
events = st.one_of(
    st.builds(Text, st.sampled_from([Tag.AI, Tag.THINK]), texts),
    st.builds(lambda tool, text: ToolOutput(ToolRef(tool), text), st.sampled_from(["a", "b", "AI"]), texts),
    st.builds(lambda tool: ToolEnd(ToolResult(tool, ToolStatus.OK)), st.sampled_from(["a", "b", "AI"])),
)


@given(st.lists(st.lists(events, max_size=6), max_size=6))
def test_the_ends_of_all_texts_but_those_of_tools_that_have_ended(batches: list[list[TranscriptEvent]]) -> None:
    tails, wanted = Tails(4), dict[str, str]()
    for batch in batches:
        over = set()
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
                    over.add(f"tool {tool.id}")
        assert tails.look(batch) == ends
        assert set(tails.keep()) == over
    assert {k: v for k, v in tails.take().items() if v} == {k: v[-CONTEXT:] for k, v in wanted.items() if v}
    assert tails.take() == {}


def test_tools_that_never_end_do_not_fill_the_memory() -> None:
    tails = Tails(4)
    for number in range(5000):
        tails.look([ToolOutput(ToolRef(str(number)), "x" * 100_000)])
        tails.keep()
    kept = tails.take()
    assert len(kept) < 1000
    assert set(map(len, kept.values())) == {CONTEXT}
    assert "tool 4999" in kept


def test_a_secret_may_have_begun_long_ago() -> None:
    """Its first characters came with a tool's output, then another tool was loud, then the rest came."""
    masked = EventMasker(Masker({SECRET: "MY_KEY"}))
    masked.expect_pieces(True)
    masked.encode([ToolOutput(ToolRef("a"), f"the key is {SECRET[:3]}")])
    for _ in range(50):
        masked.encode([ToolOutput(ToolRef("b"), "some words of another")] * 20)
    shown, lines = masked.encode([ToolOutput(ToolRef("a"), f"{SECRET[3:]} and that is all\n")])
    assert SECRET[3:].encode() not in lines
    assert [event.text for event in shown if isinstance(event, ToolOutput)] == [" and that is all\n"]
