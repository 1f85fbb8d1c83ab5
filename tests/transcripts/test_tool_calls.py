"""Tool calls that an agent reports more than once, not at all, or refuses to run."""

from __future__ import annotations

from typing import Any

import pytest

from ralph.transcripts import recent
from ralph.transcripts.events import ToolCall, ToolEnd, ToolOutput, ToolRef, ToolResult, ToolStart, ToolStatus
from ralph.transcripts.tool_calls import ToolCalls, output_text

OK, FAIL = ToolStatus.OK, ToolStatus.FAIL


def test_a_repeated_call_starts_and_ends_once() -> None:
    calls = ToolCalls()
    assert calls.start("a", "shell", {"command": "ls"}) == [ToolStart(ToolCall("a", "shell", {"command": "ls"}))]
    assert calls.start("a", "shell", None) == []
    assert calls.end("a", "x", OK, duration_ms=7) == [
        ToolOutput(ToolRef("a", "shell"), "x"),
        ToolEnd(ToolResult("a", OK, 7, "shell")),
    ]
    assert calls.start("a", "shell", None) + calls.end("a", "x", OK) == []


def test_the_end_of_an_unknown_call_starts_it() -> None:
    assert ToolCalls().end("a", "", FAIL) == [
        ToolStart(ToolCall("a", "tool")),
        ToolEnd(ToolResult("a", FAIL, None, "tool")),
    ]


def test_a_refused_tool_is_remembered_until_it_succeeds() -> None:
    calls = ToolCalls()
    for call, name in (("a", "shell"), ("b", "edit"), ("c", "shell"), ("d", "shell")):
        calls.start(call, name, None)
    calls.end("a", "", FAIL, refusal="not allowed")
    calls.end("b", "", OK)
    calls.end("c", "", FAIL)
    assert calls.refused == {"shell": "not allowed"}
    calls.end("d", "", OK)
    assert not calls.refused


def test_many_open_calls_do_not_fill_the_memory() -> None:
    calls = ToolCalls()
    for number in range(3 * recent.KEPT):
        calls.start(str(number), "shell", None)
    assert len(calls.start("0", "shell", None)) == 1  # forgotten


@pytest.mark.parametrize(("value", "text"), [("a", "a"), ("", ""), (None, ""), ({"a": [1]}, '{"a":[1]}'), (0, "0")])
def test_output_that_is_not_text_becomes_json(value: Any, text: str) -> None:
    assert output_text(value) == text
