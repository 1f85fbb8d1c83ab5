"""RTF1 lines between plain ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.transcripts.events import Meta, Tag, Text, ToolOutput, ToolRef, UsageEvent
from ralph.transcripts.rtf1 import SENTINEL, Rtf1Adapter


def test_a_line_with_the_sentinel_is_an_event() -> None:
    adapter = Rtf1Adapter()
    (event,) = adapter.feed('@@RALPH@@ {"type":"tool_output","tool":{"id":"1"},"text":"x"}')
    assert event == ToolOutput(ToolRef("1"), "x")
    assert adapter.structured


@pytest.mark.parametrize(
    "line", ["hello", "", " @@RALPH@@ {}", "@@RALPH@@{}", "@@RALPH@@", 'say @@RALPH@@ {"type":"meta"}']
)
def test_any_other_line_is_the_agents_text(line: str) -> None:
    adapter = Rtf1Adapter()
    assert adapter.feed(line) == [Text(Tag.AI, line)]
    assert not adapter.structured


@pytest.mark.parametrize(
    "body", ["", "{", "not json", '{"type":"song"}', '{"type":"text","tag":"NOBODY","text":"x"}', '{"type":"usage"}']
)
def test_an_invalid_event_is_reported_and_the_line_is_shown(body: str) -> None:
    line = SENTINEL + body
    adapter = Rtf1Adapter()
    problem, shown = adapter.feed(line)
    assert isinstance(problem, Meta)
    assert problem.meta["kind"] == "parse_error"
    assert problem.meta["message"]
    assert problem.meta["line"] == line
    assert shown == Text(Tag.SYS, line)
    assert not adapter.structured


def test_a_lone_surrogate_is_accepted() -> None:
    assert Rtf1Adapter().feed('@@RALPH@@ {"type":"text","tag":"AI","text":"\\udc00"}') == [Text(Tag.AI, "\ufffd")]


def test_usage_may_carry_more_than_four_numbers() -> None:
    (event,) = Rtf1Adapter().feed('@@RALPH@@ {"type":"usage","usage":{"cached_tokens":5,"cost_usd":0.25}}')
    assert isinstance(event, UsageEvent)
    assert (event.usage.cached_tokens, event.usage.cost_usd, event.usage.prompt_tokens) == (5, 0.25, None)


def test_rtf1_supports_roles_tools_and_usage() -> None:
    capabilities = Rtf1Adapter.capabilities
    assert capabilities.supports_roles
    assert capabilities.supports_tool_events
    assert capabilities.supports_usage_events


def test_stderr_is_system_text() -> None:
    line = '@@RALPH@@ {"type":"text","tag":"AI","text":"x"}'
    assert Rtf1Adapter().feed_stderr(line) == [Text(Tag.SYS, line)]


@given(st.text(), st.booleans())
def test_no_line_is_lost_and_none_raises(text: str, marked: bool) -> None:
    line = SENTINEL + text if marked else text
    assert Rtf1Adapter().feed(line)


@pytest.mark.parametrize("kind", ['"run_end"', '"verdict"', "[]", "{}", "5"])
def test_an_agent_cannot_send_events_that_only_ralph_may_write(kind: str) -> None:
    (event,) = Rtf1Adapter().feed(f'@@RALPH@@ {{"type":"meta","meta":{{"kind":{kind}}}}}')
    assert isinstance(event, Meta)
    assert event.meta["kind"] == "unknown"
