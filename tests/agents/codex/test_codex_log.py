"""The tokens of each answer, which Codex writes to its log on stderr while it works."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ralph.agents.codex.adapter import CodexAdapter
from ralph.judging.observe import Observation
from ralph.judging.signals import Markers
from ralph.transcripts.events import Usage

#: 0.166 writes each line for two targets, 0.50 for one.
_NEW = (
    '2026-11-16T13:20:03.314859Z  INFO codex_otel.{target}: event.name="codex.sse_event" event.kind=response.completed'
    " input_token_count={input} output_token_count={output} cached_token_count={cached} cache_write_token_count=0"
    " reasoning_token_count=20 tool_token_count=1305 ttft_ms=0 event.timestamp=2026-11-16T13:20:03.314Z"
    " conversation.id=t-1 app.version=0.166.0 originator=codex_exec model=scripted-model slug=scripted-model"
)
_OLD = (
    '2026-11-16T13:20:04.885395Z  INFO codex_otel::otel_event_manager: event.name="codex.sse_event"'
    " event.timestamp=2026-11-16T13:20:04.885Z event.kind=response.completed conversation.id=t-1 app.version=0.50.0"
    " terminal.type=xterm model=scripted-model slug=scripted-model input_token_count={input}"
    " output_token_count={output} cached_token_count={cached} reasoning_token_count=20 tool_token_count=1305"
)
_START = ({"type": "thread.started", "thread_id": "t-1"}, {"type": "turn.started"})


def new(*numbers: int) -> list[str]:
    return [_line(_NEW, *numbers, target=target) for target in ("log_only", "trace_safe")]


def old(*numbers: int) -> list[str]:
    return [_line(_OLD, *numbers)]


def _line(form: str, read: int, written: int, cached: int, **more: str) -> str:
    return form.format(input=read, output=written, cached=cached, **more)


class Run:
    def __init__(self) -> None:
        self._adapter = CodexAdapter()
        self.seen = Observation(Markers())

    def out(self, *values: dict[str, Any]) -> None:
        for value in values:
            self.seen.feed(self._adapter.feed(json.dumps(value)))

    def err(self, lines: list[str]) -> list[Any]:
        events = [event for line in lines for event in self._adapter.feed_stderr(line)]
        self.seen.feed(events)
        return events


@pytest.mark.parametrize("log", [new, old])
def test_each_answer_counts_once_until_the_turn_reports_its_total(log: Any) -> None:
    run = Run()
    run.out(*_START)
    run.err(log(1200, 105, 0))
    assert run.seen.usage.total_tokens == 1305
    run.err(log(1400, 60, 1024))
    used = run.seen.usage
    assert (used.prompt_tokens, used.completion_tokens, used.cached_tokens) == (2600, 165, 1024)
    assert (used.model, used.at_least) == ("scripted-model", True)
    run.out({"type": "turn.completed", "usage": {"input_tokens": 2600, "output_tokens": 165}})
    assert run.seen.usage == Usage(2600, 165, 2765, "scripted-model")


def test_a_line_that_is_read_after_the_turns_total_is_part_of_it() -> None:
    run = Run()
    run.out(*_START, {"type": "turn.completed", "usage": {"input_tokens": 1200, "output_tokens": 105}})
    assert run.err(new(1200, 105, 0)) == []
    assert (run.seen.usage.total_tokens, run.seen.usage.at_least) == (1305, False)


def test_a_line_that_is_read_before_the_first_one_of_stdout_counts() -> None:
    run = Run()
    run.err(new(1200, 105, 0))
    run.out(*_START)
    assert run.seen.usage.total_tokens == 1305


@pytest.mark.parametrize(
    "line",
    [
        "error: input_token_count=12",
        "2026-11-16T13:20:03Z ERROR codex_core: event.kind=response.completed input_token_count=1",
        'the log said: 2026-11-16T13:20:03Z  INFO codex_otel: event.kind="response.completed" input_token_count=1',
    ],
)
def test_other_lines_are_text(line: str) -> None:
    run = Run()
    (event,) = run.err([line])
    assert event.text == line
    assert not run.seen.usage_seen


def test_a_terminal_mixes_the_log_with_the_json() -> None:
    run = Run()
    run.out(*_START)
    run.seen.feed(run._adapter.feed("\x1b[2m" + old(10, 5, 0)[0] + "\x1b[0m"))
    assert run.seen.usage.total_tokens == 15
