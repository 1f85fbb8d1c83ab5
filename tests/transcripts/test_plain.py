"""Plain output: every line is the agent's own, except for an echo of the prompt."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ralph.transcripts.base import Capabilities
from ralph.transcripts.events import Tag, Text
from ralph.transcripts.plain import PlainAdapter


def tags(prompt: str | None, lines: list[str]) -> list[Tag]:
    adapter = PlainAdapter(prompt)
    found = []
    for line in lines:
        (event,) = adapter.feed(line)
        assert isinstance(event, Text)
        assert event.text == line
        found.append(event.tag)
    return found


@given(st.text())
def test_every_line_is_the_agents_text(line: str) -> None:
    assert PlainAdapter().feed(line) == [Text(Tag.AI, line)]


def test_plain_text_has_no_capabilities() -> None:
    assert PlainAdapter.capabilities == Capabilities()
    assert PlainAdapter().structured is False
    assert PlainAdapter().flush() == []


def test_stderr_is_system_text() -> None:
    assert PlainAdapter().feed_stderr("x") == [Text(Tag.SYS, "x")]


def test_an_echo_of_the_prompt_is_recognised() -> None:
    prompt = "Do it.\n\nThen print\nDONE\n"
    assert tags(prompt, ["Do it.", "", "Then print", "DONE"]) == [Tag.PROMPT] * 4


def test_a_line_after_the_echo_is_the_agents_even_if_it_repeats_the_prompt() -> None:
    assert tags("Print\nDONE\n", ["Print", "DONE", "DONE"]) == [Tag.PROMPT, Tag.PROMPT, Tag.AI]


def test_lines_of_the_prompt_later_in_the_output_are_the_agents() -> None:
    assert tags("Print\nDONE", ["working", "Print", "DONE"]) == [Tag.AI] * 3


def test_everything_after_an_incomplete_echo_is_the_agents() -> None:
    assert tags("a\nb\nDONE", ["a", "x", "b", "DONE"]) == [Tag.PROMPT, Tag.AI, Tag.AI, Tag.AI]


def test_trailing_spaces_make_no_difference() -> None:
    assert tags("a  \r\nb\n\n\n", ["a", "b ", "DONE"]) == [Tag.PROMPT, Tag.PROMPT, Tag.AI]
