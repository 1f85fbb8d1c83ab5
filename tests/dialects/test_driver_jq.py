"""A driver's own filter over a stream: with the real jq."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from ralph.dialects.driver import jq as jq_module
from ralph.dialects.driver.jq import JqAdapter, complaint
from ralph.transcripts.events import Meta, Tag, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

JQ = shutil.which("jq")
pytestmark = pytest.mark.needs("jq")


@pytest.fixture
def shown() -> Iterator[Callable[..., list[tuple[str, str]]]]:
    """What a filter makes of lines: who said it, and what."""
    made: list[JqAdapter] = []

    def show(program: str, *lines: str) -> list[tuple[str, str]]:
        adapter = JqAdapter(str(JQ), program)
        made.append(adapter)
        events = [event for line in lines for event in adapter.feed(line)] + adapter.flush()
        return [
            (event.tag.value, event.text) if isinstance(event, Text) else ("meta", str(event.meta["kind"]))
            for event in events
            if isinstance(event, Text | Meta)
        ]

    yield show
    for adapter in made:
        adapter.flush()


def test_a_line_that_is_no_json_does_not_end_the_filter(shown: Callable[..., list[tuple[str, str]]]) -> None:
    assert shown(".text", '{"text":"one"}', "oops", "{broken", '{"text":"two"}') == [
        ("AI", "one"),
        ("SYS", "oops"),
        ("SYS", "{broken"),
        ("AI", "two"),
    ]


def test_a_line_on_which_the_filter_fails_does_not_end_it(shown: Callable[..., list[tuple[str, str]]]) -> None:
    assert shown('.text + "!"', '{"text":5}', '{"text":"two"}') == [("AI", '{"text":5}'), ("AI", "two!")]


def test_fragments_are_joined_to_lines(shown: Callable[..., list[tuple[str, str]]]) -> None:
    lines = ('{"delta":"---RAL"}', '{"delta":"PH_STATUS---\\nSTA"}', '{"delta":"TUS: x"}', '{"stop":1}')
    program = '.delta // (select(.stop) | "\\n")'
    assert shown(program, *lines) == [("AI", "---RALPH_STATUS---"), ("AI", "STATUS: x")]


def test_whole_messages_stay_apart(shown: Callable[..., list[tuple[str, str]]]) -> None:
    assert shown(".text", '{"text":"one"}', '{"text":"two\\nthree"}') == [("AI", "one"), ("AI", "two\nthree")]


def test_what_the_filter_leaves_out_is_not_shown(shown: Callable[..., list[tuple[str, str]]]) -> None:
    assert shown("empty", '{"text":"one"}') == []
    assert shown(".a[]?", '{"a":["x",{"y":1},2]}', '{"a":null}') == [("AI", 'x{"y":1}2')]


def test_a_filter_with_comments_and_many_lines_is_taken(shown: Callable[..., list[tuple[str, str]]]) -> None:
    assert shown("# a comment\nif .t then .t\nelse empty end # more", '{"t":"x"}') == [("AI", "x")]


def test_text_alone_is_the_agents_own(shown: Callable[..., list[tuple[str, str]]]) -> None:
    assert shown(".text", "hello", "world") == [("AI", "hello"), ("AI", "world")]


def test_a_filter_that_dies_or_thinks_forever_loses_no_line(
    shown: Callable[..., list[tuple[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jq_module, "_PATIENCE", 0.5)
    for program in ("halt", "last(repeat(.))"):
        assert shown(program, '{"text":"one"}', '{"text":"two"}') == [
            ("meta", "parse_error"),
            ("AI", '{"text":"one"}'),
            ("AI", '{"text":"two"}'),
        ]


def test_a_long_line_and_odd_bytes_come_through(shown: Callable[..., list[tuple[str, str]]]) -> None:
    long = "x" * 3_000_000
    assert shown(".text", f'{{"text":"{long}"}}', '{"text":"a\u2028b \udcff"}')[0] == (Tag.AI.value, long)


def test_what_is_no_filter_is_told_before_the_start() -> None:
    assert complaint(str(JQ), ".text") is None
    assert "syntax error" in (complaint(str(JQ), "if then") or "")
