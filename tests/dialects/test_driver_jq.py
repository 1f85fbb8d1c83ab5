"""A driver's own display filter, run by the real jq."""

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
    """The tag and the text of each event that a filter produces from some lines."""
    made: list[JqAdapter] = []

    def show(program: str, *lines: str) -> list[tuple[str, str]]:
        adapter = JqAdapter(str(JQ), program, {})
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


def test_a_line_that_is_not_json_does_not_stop_the_filter(shown: Callable[..., list[tuple[str, str]]]) -> None:
    assert shown(".text", '{"text":"one"}', "oops", "{broken", '{"text":"two"}') == [
        ("AI", "one"),
        ("SYS", "oops"),
        ("SYS", "{broken"),
        ("AI", "two"),
    ]


def test_an_error_in_the_filter_does_not_stop_it(shown: Callable[..., list[tuple[str, str]]]) -> None:
    assert shown('.text + "!"', '{"text":5}', '{"text":"two"}') == [("AI", '{"text":5}'), ("AI", "two!")]


def test_fragments_are_joined_into_lines(shown: Callable[..., list[tuple[str, str]]]) -> None:
    lines = ('{"delta":"---RAL"}', '{"delta":"PH_STATUS---\\nSTA"}', '{"delta":"TUS: x"}', '{"stop":1}')
    program = '.delta // (select(.stop) | "\\n")'
    assert shown(program, *lines) == [("AI", "---RALPH_STATUS---"), ("AI", "STATUS: x")]


def test_whole_messages_stay_separate(shown: Callable[..., list[tuple[str, str]]]) -> None:
    assert shown(".text", '{"text":"one"}', '{"text":"two\\nthree"}') == [("AI", "one"), ("AI", "two\nthree")]


def test_what_the_filter_leaves_out_is_not_shown(shown: Callable[..., list[tuple[str, str]]]) -> None:
    assert shown("empty", '{"text":"one"}') == []
    assert shown(".a[]?", '{"a":["x",{"y":1},2]}', '{"a":null}') == [("AI", 'x{"y":1}2')]


def test_a_filter_may_have_comments_and_several_lines(shown: Callable[..., list[tuple[str, str]]]) -> None:
    assert shown("# a comment\nif .t then .t\nelse empty end # more", '{"t":"x"}') == [("AI", "x")]


def test_plain_text_without_json_is_the_agents_own(shown: Callable[..., list[tuple[str, str]]]) -> None:
    assert shown(".text", "hello", "world") == [("AI", "hello"), ("AI", "world")]


def test_no_line_is_lost_if_the_filter_exits_or_hangs(
    shown: Callable[..., list[tuple[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jq_module, "_TIMEOUT", 0.5)
    for program in ("halt", "last(repeat(.))"):
        assert shown(program, '{"text":"one"}', '{"text":"two"}') == [
            ("meta", "parse_error"),
            ("AI", '{"text":"one"}'),
            ("AI", '{"text":"two"}'),
        ]


def test_long_lines_and_invalid_bytes_are_kept(shown: Callable[..., list[tuple[str, str]]]) -> None:
    long = "x" * 3_000_000
    assert shown(".text", f'{{"text":"{long}"}}', '{"text":"a\u2028b \udcff"}')[0] == (Tag.AI.value, long)


def test_an_invalid_filter_is_reported() -> None:
    assert complaint(str(JQ), ".text", {}) is None
    assert "syntax error" in (complaint(str(JQ), "if then", {}) or "")
