"""Answers of any content, in chunks of any size."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agents.openai_http.byteserver import DONE, delta
from ralph.agents.openai_http.answer import Answer
from ralph.agents.openai_http.errors import refused
from ralph.agents.openai_http.sse import AnswerReader, Item
from ralph.agents.openai_http.thinking import ThinkTags
from ralph.transcripts.events import Meta, Tag, TranscriptEvent, decode, encode
from ralph.transcripts.meta import ErrorClass

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
#: Objects with the field names that the reader knows, and any values.
NAMES = ["error", "choices", "usage", "delta", "message", "content", "reasoning", "tool_calls", "function", "name"]
NAMES += ["finish_reason", "code", "type", "metadata", "headers", "raw", "id", "model", "object", "detail", "cost"]
SHAPED = st.recursive(
    JSON, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5)
)
STREAM = b": hi\n\n" + delta(content="Gr\u00fc\u00dfe \U0001f600\n") + delta(content="\u65e5\u672c", reasoning="Hm.")
STREAM += b"data: {torn\n\nodd\r\n" + delta("stop") + DONE


def read(data: bytes, cuts: list[int]) -> list[Item]:
    reader, items, last = AnswerReader(), [], 0
    for cut in [*sorted(cuts), len(data)]:
        items += reader.feed(data[last:cut])
        last = max(last, cut)
    return items + reader.flush()


@given(st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_the_size_of_chunks_does_not_matter(cuts: list[int]) -> None:
    assert read(STREAM, cuts) == read(STREAM, [])


def test_a_stream_is_read_up_to_its_end() -> None:
    items = read(STREAM + delta(content="more"), [])
    assert [item for item in items if not isinstance(item, dict)] == ["{torn", "odd"]
    assert len(items) == 5


@given(st.binary(max_size=200), st.sampled_from([b"", b"data: ", b"{", b"[", b"\xef\xbb\xbf"]))
def test_any_bytes_give_a_verdict(data: bytes, start: bytes) -> None:
    answer = Answer()
    for item in read(start + data, []):
        answer.feed(item)
    check_verdict(answer, answer.end())


@given(st.lists(st.dictionaries(st.sampled_from(NAMES), SHAPED, max_size=6), max_size=4), st.text(max_size=5))
def test_objects_of_any_shape_give_events_and_a_verdict(chunks: list[dict[str, Any]], broken: str) -> None:
    answer = Answer()
    events = [event for chunk in chunks for event in answer.feed(chunk)] + answer.end(broken or None)
    for event in events:
        assert decode(encode(event)) is not None
    check_verdict(answer, events)


def check_verdict(answer: Answer, events: list[TranscriptEvent]) -> None:
    """There is either a failure, which the caller reports, or a result."""
    results = [event for event in events if isinstance(event, Meta) and event.meta["kind"] == "result"]
    assert [result.meta["ok"] for result in results] == ([True] if answer.failure is None else [])


@given(st.integers(300, 599), SHAPED | st.binary(max_size=100), st.text(max_size=8))
def test_refusals_of_any_shape_are_classified(status: int, body: Any, wait: str) -> None:
    import json

    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"retry-after": wait, "x-ratelimit-reset": wait}
    assert refused(status, headers, data, "http://x", with_key=True).error_class in ErrorClass


@given(st.lists(st.sampled_from(["<th", "ink>", "<think>", "</think>", "</", "a", "\n", " ", "<"]), max_size=12))
def test_no_text_is_lost_between_thoughts_and_answer(pieces: list[str]) -> None:
    def split(fragments: list[str]) -> dict[Tag, str]:
        tags = ThinkTags()
        split_up = [piece for fragment in fragments for piece in tags.feed(fragment)] + tags.flush()
        return {tag: "".join(text for kind, text in split_up if kind is tag) for tag in (Tag.AI, Tag.THINK)}

    whole = "".join(pieces)
    found = split(pieces)
    if whole.lstrip().startswith("<think>"):
        thought, _, words = whole.lstrip().removeprefix("<think>").partition("</think>")
        assert (found[Tag.THINK].strip(), found[Tag.AI].strip()) == (thought.strip(), words.strip())
    else:
        assert found == {Tag.AI: whole, Tag.THINK: ""}
