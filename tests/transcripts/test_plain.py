"""Plain output: every line is the agent's, but for an echo of its prompt."""

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
def test_every_line_is_the_agents_words(line: str) -> None:
    assert PlainAdapter().feed(line) == [Text(Tag.AI, line)]


def test_it_promises_nothing_it_cannot_know() -> None:
    assert PlainAdapter.capabilities == Capabilities()
    assert PlainAdapter().structured is False
    assert PlainAdapter().flush() == []


def test_stderr_is_nobodys_words() -> None:
    assert PlainAdapter().feed_stderr("x") == [Text(Tag.SYS, "x")]


def test_an_echo_of_the_prompt_is_the_prompt() -> None:
    prompt = "Do it.\n\nThen print\nDONE\n"
    assert tags(prompt, ["Do it.", "", "Then print", "DONE"]) == [Tag.PROMPT] * 4


def test_what_follows_the_echo_is_the_agents_even_if_it_is_the_same_line() -> None:
    assert tags("Print\nDONE\n", ["Print", "DONE", "DONE"]) == [Tag.PROMPT, Tag.PROMPT, Tag.AI]


def test_lines_of_the_prompt_that_come_later_are_the_agents() -> None:
    assert tags("Print\nDONE", ["working", "Print", "DONE"]) == [Tag.AI] * 3


def test_with_an_echo_that_breaks_off_the_rest_is_the_agents() -> None:
    assert tags("a\nb\nDONE", ["a", "x", "b", "DONE"]) == [Tag.PROMPT, Tag.AI, Tag.AI, Tag.AI]


def test_trailing_blanks_make_no_difference() -> None:
    assert tags("a  \r\nb\n\n\n", ["a", "b ", "DONE"]) == [Tag.PROMPT, Tag.PROMPT, Tag.AI]
