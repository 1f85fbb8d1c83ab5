"""What the provider convention adds to Claude's transcript."""

from __future__ import annotations

import json
from typing import Any

from ralph.agents import adapters as registry
from ralph.config.settings import Settings
from ralph.dialects.provider.transcript import ProviderAdapter, patterns_of
from ralph.transcripts.events import Meta, Tag, Text


def read(*lines: dict[str, Any] | str, settings: Settings | None = None) -> list[Any]:
    chosen = settings or Settings()
    adapter = ProviderAdapter(registry.create("claude"), patterns_of(chosen), chosen.wait_on_limit)
    events = [e for line in lines for e in adapter.feed(line if isinstance(line, str) else json.dumps(line))]
    return events + adapter.flush()


def texts(events: list[Any], tag: Tag = Tag.AI) -> list[str]:
    return [e.text for e in events if isinstance(e, Text) and e.tag is tag]


def results(events: list[Any]) -> list[Any]:
    return [e.meta["ok"] for e in events if isinstance(e, Meta) and e.meta["kind"] == "result"]


def delta(text: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}}


RESULT = {"type": "result", "result": ""}
FAILED = {"type": "result", "is_error": True, "result": "it broke"}
GOOD = {"type": "result", "subtype": "success", "is_error": False, "result": "ok"}


def test_lines_before_the_first_event_are_not_the_agents_own() -> None:
    events = read("<<<RALPHEX:COMPLETED>>>", "loading", delta("hello\n"), RESULT)
    assert texts(events) == ["hello"]
    assert texts(events, Tag.SYS) == ["<<<RALPHEX:COMPLETED>>>", "loading"]


def test_lines_without_any_event_are_the_agents_own() -> None:
    assert texts(read("one", "two")) == ["one", "two"]
    many = [f"line {n}" for n in range(200)]
    assert texts(read(*many)) == many


def test_a_bare_result_after_a_failure_is_ignored() -> None:
    assert results(read(delta("x\n"), FAILED, RESULT)) == [False]
    assert results(read(delta("x\n"), FAILED, delta("again\n"), RESULT)) == [False, True]
    assert results(read(delta("x\n"), FAILED, GOOD)) == [False, True]


def test_a_stream_without_a_result_is_not_an_error() -> None:
    assert [e for e in read(delta("words")) if isinstance(e, Meta) and e.meta["kind"] == "error"] == []


def test_a_pattern_decides_the_result_and_the_time_to_wait() -> None:
    settings = Settings(claude_limit_patterns=("hit your limit",), wait_on_limit=90.0)
    events = read(delta("You've HIT YOUR LIMIT\n"), RESULT, settings=settings)
    last, limit = events[-1].meta, events[-2].meta
    assert (last["kind"], last["ok"], last["class"]) == ("result", False, "rate_limited")
    assert (limit["kind"], limit["retry_after"]) == ("rate_limit", 90.0)


def test_a_limit_overrides_an_error_in_any_order() -> None:
    settings = Settings(claude_limit_patterns=("limit",), claude_error_patterns=("error",))
    for order in (("error\n", "limit\n"), ("limit\n", "error\n")):
        events = read(*(delta(text) for text in order), RESULT, settings=settings)
        assert events[-1].meta["class"] == "rate_limited"
