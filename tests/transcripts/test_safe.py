"""The boundary around an adapter."""

from __future__ import annotations

import pytest

from ralph.transcripts.base import Block, Capabilities, TranscriptAdapter
from ralph.transcripts.events import Meta, Tag, Text, TranscriptEvent
from ralph.transcripts.safe import SafeAdapter


class Broken(TranscriptAdapter):
    """As an adapter with a bug would be."""

    name = "broken"
    capabilities = Capabilities(supports_roles=True)

    def feed(self, line: str) -> list[TranscriptEvent]:
        if line == "good":
            self.structured = True
            return [Text(Tag.AI, line)]
        raise KeyError(line)

    def feed_stderr(self, line: str) -> list[TranscriptEvent]:
        raise RecursionError

    def flush(self) -> list[TranscriptEvent]:
        raise ZeroDivisionError


def test_a_line_on_which_it_fails_is_kept_and_the_failure_told() -> None:
    problem, shown = SafeAdapter(Broken()).feed("bad line")
    assert isinstance(problem, Meta)
    assert problem.meta["kind"] == "parse_error"
    assert "broken" in problem.meta["message"]
    assert "KeyError" in problem.meta["message"]
    assert problem.meta["line"] == "bad line"
    assert shown == Text(Tag.SYS, "bad line")


def test_stderr_and_the_end_are_guarded_as_well() -> None:
    adapter = SafeAdapter(Broken())
    assert adapter.feed_stderr("x")[-1] == Text(Tag.SYS, "x")
    (problem,) = adapter.flush()
    assert isinstance(problem, Meta)


def test_what_works_passes_through() -> None:
    adapter = SafeAdapter(Broken())
    assert adapter.capabilities.supports_roles
    assert not adapter.structured
    assert adapter.feed("good") == [Text(Tag.AI, "good")]
    assert adapter.structured
    assert adapter.name == "broken"


class Halfway(TranscriptAdapter):
    """Takes two lines together each time, and has a bug in that: it fails with the pair that begins with `bad`."""

    name = "halfway"

    def feed(self, line: str) -> list[TranscriptEvent]:
        if line == "worse":
            raise KeyError(line)
        return [Text(Tag.AI, line)]

    def feed_block(self, block: Block) -> None:
        while block.at + 1 < len(block.lines):
            pair = block.lines[block.at : block.at + 2]
            if pair[0] == "bad":
                raise ValueError(pair)
            block.take(block.at + 2, [Text(Tag.AI, line) for line in pair])

    feed_stderr, feed_stderr_block = feed, feed_block


@pytest.mark.parametrize("stderr", [False, True])
def test_a_bug_in_the_middle_of_many_lines_loses_none_and_doubles_none(stderr: bool) -> None:
    adapter = SafeAdapter(Halfway())
    feed = adapter.feed_stderr_lines if stderr else adapter.feed_lines
    lines = ["1", "2", "3", "4", "bad", "6", "worse", "8", "9"]
    events = feed(lines)
    assert [event.text for event in events if isinstance(event, Text)] == lines
    told = [event.meta for event in events if isinstance(event, Meta)]
    assert [(t["kind"], t["line"]) for t in told] == [("parse_error", "bad"), ("parse_error", "worse")]
    assert "halfway" in told[0]["message"]
    assert "ValueError" in told[0]["message"]
    # It is told once: after that, each line goes its own way.
    assert feed(["bad", "6"]) == [Text(Tag.AI, "bad"), Text(Tag.AI, "6")]


def test_many_lines_of_an_adapter_without_a_shorter_way_are_guarded_one_by_one() -> None:
    adapter = SafeAdapter(Broken())
    out = adapter.feed_lines(["good", "bad", "good"])
    assert [event.text for event in out if isinstance(event, Text)] == ["good", "bad", "good"]
    err = adapter.feed_stderr_lines(["x", "y"])
    assert [event.text for event in err if isinstance(event, Text)] == ["x", "y"]
