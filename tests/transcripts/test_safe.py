"""The boundary around an adapter."""

from __future__ import annotations

from ralph.transcripts.base import Capabilities, TranscriptAdapter
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
