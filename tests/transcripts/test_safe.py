"""The boundary around an adapter."""

from __future__ import annotations

import pytest

from ralph.transcripts.base import Capabilities, TranscriptAdapter
from ralph.transcripts.events import Meta, Tag, Text, TranscriptEvent
from ralph.transcripts.safe import SafeAdapter


class Broken(TranscriptAdapter):
    """An adapter with a bug."""

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


def test_a_line_on_which_it_fails_is_kept_and_the_failure_reported() -> None:
    problem, shown = SafeAdapter(Broken()).feed_lines(["bad line"])
    assert isinstance(problem, Meta)
    assert problem.meta["kind"] == "parse_error"
    assert "broken" in problem.meta["message"]
    assert "KeyError" in problem.meta["message"]
    assert problem.meta["line"] == "bad line"
    assert shown == Text(Tag.SYS, "bad line")


def test_stderr_and_the_end_are_guarded_too() -> None:
    adapter = SafeAdapter(Broken())
    assert adapter.feed_stderr_lines(["x"])[-1] == Text(Tag.SYS, "x")
    (problem,) = adapter.flush()
    assert isinstance(problem, Meta)


def test_what_works_passes_through() -> None:
    adapter = SafeAdapter(Broken())
    assert adapter.capabilities.supports_roles
    assert not adapter.structured
    assert adapter.feed_lines(["good"]) == [Text(Tag.AI, "good")]
    assert adapter.structured
    assert adapter.name == "broken"


@pytest.mark.parametrize("stderr", [False, True])
def test_a_bug_on_one_of_many_lines_loses_none_and_repeats_none(stderr: bool) -> None:
    adapter = SafeAdapter(Broken())
    feed = adapter.feed_stderr_lines if stderr else adapter.feed_lines
    lines = ["good", "bad", "good", "worse"]
    events = feed(lines)
    assert [event.text for event in events if isinstance(event, Text)] == lines
    failed = lines if stderr else ["bad", "worse"]
    assert [event.meta["line"] for event in events if isinstance(event, Meta)] == failed
