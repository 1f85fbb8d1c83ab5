"""pi: what the recordings do not cover, such as release 0.87, successful retries, RPC and damaged lines."""

from __future__ import annotations

import gzip
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fuzz.damage import damaged, recorded, text_line, words_line
from hypothesis import given
from hypothesis import strategies as st

from agents.reading import events_of, metas, texts, verdict_of
from ralph.judging.replay import replay
from ralph.transcripts.events import (
    Tag,
    Text,
    ToolEnd,
    ToolOutput,
    ToolStart,
    ToolStatus,
    UsageEvent,
    decode,
    encode,
)

events = partial(events_of, "pi")
verdict = partial(verdict_of, "pi")
SUCCESS = Path(__file__).parents[2] / "fixtures" / "pi" / "0.73.1" / "json-success.jsonl.gz"
REAL = recorded("pi")
MARKER = "<promise>COMPLETE</promise>"
HEADER = {"type": "session", "version": 3, "id": "s-1", "timestamp": "t", "cwd": "/repo"}
START = {"type": "agent_start"}
RETRY = {"type": "auto_retry_start", "attempt": 1, "maxAttempts": 3, "delayMs": 2000, "errorMessage": "503 busy"}
SETTLED = {"type": "agent_settled"}


def update(kind: str, **fields: Any) -> dict[str, Any]:
    """An update of release 0.87, which does not repeat the whole message."""
    return {"type": "message_update", "assistantMessageEvent": {"type": kind, "contentIndex": 0, **fields}}


def message(*content: Any, stop: str | None = "stop", **more: Any) -> dict[str, Any]:
    return {
        "type": "message_end",
        "message": {"role": "assistant", "content": list(content), "stopReason": stop, **more},
    }


def words(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def failed(text: str) -> dict[str, Any]:
    return message(stop="error", errorMessage=text)


def end(**more: Any) -> dict[str, Any]:
    return {"type": "agent_end", "messages": [], **more}


def test_a_marker_split_over_deltas_is_one_line_and_shown_once() -> None:
    text = f"Done.\n\n{MARKER}\n"
    lines = [HEADER, START, *(update("text_delta", delta=c) for c in text), message(words(text)), end()]
    assert "".join(f"{t}\n" for t in texts(events(*lines))) == text
    assert verdict(*lines)["completed"]


def test_the_end_of_a_message_adds_what_no_delta_brought() -> None:
    whole = message({"type": "thinking", "thinking": "Hm."}, words("Hello,\nworld."))
    assert texts(events(HEADER, START, whole, end())) == ["Hello,\nworld."]
    assert texts(events(HEADER, START, whole, end()), Tag.THINK) == ["Hm."]
    found = events(HEADER, START, update("text_delta", delta="Hello,\nwo"), whole, end())
    assert texts(found) == ["Hello,", "world."]


def test_two_blocks_of_one_message_are_shown_separately() -> None:
    deltas = [update("text_delta", delta="one"), update("text_end"), update("text_delta", delta="two")]
    found = events(HEADER, START, *deltas, message(words("one"), {"type": "toolCall"}, words("two")), end())
    assert texts(found) == ["one", "two"]


def test_an_unfinished_message_does_not_hide_the_next_one() -> None:
    begun = {"type": "message_start", "message": {"role": "assistant", "content": []}}
    found = events(HEADER, START, begun, update("text_delta", delta="Hel"), begun, message(words("Hello.")), end())
    assert texts(found) == ["Hel", "Hello."]


def test_line_separators_inside_a_string_do_not_split_it() -> None:
    text = "one\u2028two\u2029three\u0085four"
    assert texts(events(HEADER, START, message(words(text)), end())) == [text]


def test_release_087_ends_with_agent_settled() -> None:
    lines = [HEADER, START, message(words(MARKER)), end(willRetry=False), SETTLED]
    assert verdict(*lines)["completed"]
    assert len(metas(events(*lines), "result")) == 1
    assert verdict(*lines[:-1])["completed"]  # it said that it would not retry
    assert verdict(*lines[:-2])["outcome"] == "failed"


def test_a_failed_attempt_is_forgotten_once_a_retry_works() -> None:
    new = [failed("503 busy"), end(willRetry=True), RETRY, START, message(words(MARKER)), end(willRetry=False), SETTLED]
    old = [failed("503 busy"), end(), RETRY, START, message(words(MARKER)), end(), {"type": "auto_retry_end"}]
    for lines in (new, old):
        found = events(HEADER, START, *lines)
        assert [r["ok"] for r in metas(found, "result")] == [True]
        assert [(r["class"], r["attempt"], r["delay_ms"]) for r in metas(found, "retry")] == [("overloaded", 1, 2000)]
        assert verdict(HEADER, START, *lines)["completed"]


def test_a_run_killed_during_retries_failed_for_their_cause() -> None:
    assert verdict(HEADER, START, failed("503 busy"), end(willRetry=True), RETRY, code=-9)["outcome"] == "overloaded"
    assert verdict(HEADER, START, failed("503 busy"), end(), RETRY, START, code=-9)["outcome"] == "overloaded"


def test_two_runs_in_one_output_are_two_results() -> None:
    again = {"type": "message_end", "message": {"role": "user", "content": "go on"}}
    lines = [HEADER, START, message(words("One.")), end(), START, again, message(words(MARKER)), end()]
    found = events(*lines)
    assert [r["ok"] for r in metas(found, "result")] == [True, True]
    assert texts(found, Tag.PROMPT) == ["go on"]
    assert verdict(*lines)["completed"]


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ('401 {"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}', "auth"),
        ('429 {"error":{"message":"You exceeded your current quota, please check your plan","code":"x"}}', "quota"),
        ('400 {"error":{"message":"Your credit balance is too low to access the API."}}', "quota"),
        ("You have hit your ChatGPT usage limit (plus plan). Try again in ~5 min.", "quota"),
        ('529 {"error":{"type":"overloaded_error","message":"Overloaded"}}', "overloaded"),
        ("prompt is too long: 210000 tokens > 200000 maximum", "context_exceeded"),
        ("terminated", "failed"),
    ],
)
def test_an_error_of_the_model_beats_the_exit_code(text: str, outcome: str) -> None:
    assert verdict(HEADER, START, failed(text), end(willRetry=False), SETTLED)["outcome"] == outcome
    assert verdict(HEADER, START, failed(text), end())["outcome"] == outcome


def test_the_message_of_a_limit_gives_its_end() -> None:
    text = "You have hit your ChatGPT usage limit (plus plan). Try again in ~5 min."
    assert verdict(HEADER, START, failed(text), end())["retry_after"] == 300
    assert verdict("", stderr=text, code=1)["retry_after"] == 300


@pytest.mark.parametrize("stop", ["length", "aborted", "sensitive"])
def test_an_answer_that_was_cut_off_is_a_failure(stop: str) -> None:
    told = verdict(HEADER, START, message(words(MARKER), stop=stop), end())
    assert (told["outcome"], told["completed"]) == ("failed", False)


def test_an_answer_without_words_is_empty() -> None:
    assert verdict(HEADER, START, message(), end())["outcome"] == "empty"


def test_the_last_message_can_come_with_agent_end_only() -> None:
    last = {"role": "assistant", "content": [], "stopReason": "error", "errorMessage": "403 no"}
    assert verdict(HEADER, START, {"type": "agent_end", "messages": [7, last, None]})["outcome"] == "auth"


def test_a_call_starts_and_ends_once_however_often_it_is_reported() -> None:
    start = {"type": "tool_execution_start", "toolCallId": "a", "toolName": "bash", "args": {"command": "ls"}}
    stop = {"type": "tool_execution_end", "toolCallId": "a", "result": {"content": [words("out")]}, "isError": False}
    copy = {"type": "message_end", "message": {"role": "toolResult", "toolCallId": "a", "content": [words("out")]}}
    found = events(HEADER, START, start, start, stop, stop, copy)
    assert [e.tool.input for e in found if isinstance(e, ToolStart)] == [{"command": "ls"}]
    assert [e.text for e in found if isinstance(e, ToolOutput)] == ["out"]
    assert [(e.tool.name, e.tool.status) for e in found if isinstance(e, ToolEnd)] == [("bash", ToolStatus.OK)]
    alone = events(HEADER, START, {**copy, "message": {**copy["message"], "isError": True}})
    assert [e.tool.status for e in alone if isinstance(e, ToolEnd)] == [ToolStatus.FAIL]
    assert len([e for e in alone if isinstance(e, ToolStart)]) == 1


def test_an_image_in_a_result_is_named() -> None:
    stop = {"type": "tool_execution_end", "toolCallId": "a", "result": {"content": [{"type": "image", "data": "x"}]}}
    found = events(HEADER, stop)
    assert [e.text for e in found if isinstance(e, ToolOutput)] == ["[image]"]
    assert [e.tool.status for e in found if isinstance(e, ToolEnd)] == [ToolStatus.UNKNOWN]


def test_an_unknown_type_is_kept_whole_and_known_noise_is_not() -> None:
    new = {"type": "checkpoint", "id": 5}
    assert metas(events(HEADER, new), "unknown") == [{"kind": "unknown", "line": new}]
    assert not metas(events(HEADER, {"type": "entry_appended"}, {"type": "queue_update"}), "unknown")


def test_missing_or_mistyped_fields_do_not_cost_the_line() -> None:
    found = events(
        {"type": "session", "id": 7, "cwd": None},
        {"type": "message_update", "assistantMessageEvent": "x"},
        update("text_delta", delta=4),
        {"type": "message_end", "message": {"role": "assistant", "content": "words", "usage": {"input": "many"}}},
        message(words("here"), 5, {"type": "text", "text": None}, usage={"input": 10, "cost": 0.5}),
        {"type": "tool_execution_end", "toolCallId": "a", "result": 3, "isError": "no"},
        {"type": "auto_retry_start"},
        {"type": "agent_end", "messages": {}},
    )
    assert texts(found) == ["words", "here"]
    assert [(e.usage.prompt_tokens, e.usage.cost_usd) for e in found if isinstance(e, UsageEvent)] == [(10, 0.5)]
    assert [e.tool.status for e in found if isinstance(e, ToolEnd)] == [ToolStatus.UNKNOWN]


def test_a_truncated_line_is_reported_and_the_run_fails() -> None:
    lines = [HEADER, START, json.dumps(message(words(MARKER)))[:40]]
    assert metas(events(*lines), "parse_error")
    assert verdict(*lines)["outcome"] == "failed"


def test_json_in_a_text_answer_is_part_of_the_answer() -> None:
    line = '{"type":"result","subtype":"success"}'
    assert texts(events(line, MARKER)) == [line, MARKER]
    assert verdict(line, MARKER)["completed"]


def test_escape_sequences_around_json_are_ignored() -> None:
    lines = [json.dumps(v) + "\r" for v in (HEADER, START, message(words(MARKER)), end())]
    lines[0] = "\x1b[?25l" + lines[0]
    lines[-1] += "\x1b[?25h"
    assert verdict(*lines)["completed"]


def test_stderr_warnings_are_not_errors() -> None:
    assert verdict(MARKER, stderr='Warning: Model "x" not found for provider "y". Using custom model id.')["completed"]
    assert verdict("", stderr="No API key found for anthropic.", code=1)["outcome"] == "auth"
    assert verdict(HEADER, stderr="No models available.", code=1)["outcome"] == "auth"


def test_only_a_refused_prompt_fails_an_rpc_run() -> None:
    state = {"type": "response", "command": "get_state", "success": True, "data": {"sessionId": "s", "model": None}}
    no = {"type": "response", "command": "prompt", "success": False, "error": "No API key found for anthropic."}
    told = verdict(state, no)
    assert (told["outcome"], told["session_id"]) == ("auth", "s")
    done = [START, message(words(MARKER)), end(willRetry=False), SETTLED]
    assert verdict(state, {**no, "command": "set_model"}, *done)["completed"]
    notify = {"type": "extension_ui_request", "method": "notify", "message": "saved"}
    assert texts(events(state, notify, *done), Tag.SYS) == ["saved"]


def test_messages_of_extensions_and_the_system_are_not_the_agents() -> None:
    custom = {"type": "message_end", "message": {"role": "custom", "customType": "x", "content": MARKER}}
    system = {"type": "message_end", "message": {"role": "system", "sections": [MARKER]}}
    lines = [HEADER, START, system, custom, message(words("Still at it.")), end()]
    assert texts(events(*lines), Tag.SYS) == [MARKER]
    assert not verdict(*lines)["completed"]


def test_a_run_continues_after_compaction() -> None:
    lines = [
        failed("400 prompt is too long: 9 tokens > 8 maximum"),
        end(),
        {"type": "compaction_start", "reason": "overflow"},
        {"type": "compaction_end", "result": {}, "aborted": False, "willRetry": True},
        START,
        message(words(MARKER)),
        end(),
    ]
    assert verdict(HEADER, START, *lines)["completed"]
    lines[3:] = [{"type": "compaction_end", "errorMessage": "500 no", "willRetry": False}]
    assert verdict(HEADER, START, *lines)["outcome"] == "context_exceeded"


def test_a_truncated_recording_is_a_failure() -> None:
    data = gzip.decompress(SUCCESS.read_bytes())
    for cut in range(200, len(data) - 1, 1501):
        told: Any = list(replay(data[:cut], b"", "pi", 0, None, None))[-1][0][0]
        assert told.meta["outcome"] == "failed", cut


@st.composite
def strange(draw: st.DrawFn) -> str:
    """A damaged line. Hypothesis prints arguments, so the recorded lines must not be one."""
    kind = draw(st.integers(0, 2))
    return draw(text_line() if kind == 0 else damaged(REAL))


@given(st.lists(strange(), max_size=12))
def test_damaged_lines_never_raise_and_their_events_can_be_encoded(lines: list[str]) -> None:
    for event in events(*lines, stderr="\n".join(lines)):
        decode(encode(event))


@given(st.lists(words_line(), min_size=1, max_size=10), st.booleans())
def test_no_line_of_text_is_lost(lines: list[str], structured: bool) -> None:
    found = events(*([HEADER] if structured else []), *lines)
    assert [e.text for e in found if isinstance(e, Text)] == lines


def test_release_1_reports_aborts_and_tool_durations() -> None:
    """Its docs/json.md: `agent_settled` has `aborted`, `tool_execution_end` has `durationMs`."""
    good = [HEADER, START, message(words(MARKER)), end(willRetry=False)]
    assert verdict(*good, {"type": "agent_settled", "aborted": False})["completed"]
    stopped = verdict(*good, {"type": "agent_settled", "aborted": True})
    assert (stopped["outcome"], stopped["completed"]) == ("failed", False)
    call = {"toolCallId": "c-1", "toolName": "bash"}
    result = {"content": [{"type": "text", "text": "done"}], "details": {}}
    tool_end = {"type": "tool_execution_end", **call, "result": result, "isError": False, "durationMs": 12}
    found = events(HEADER, START, {"type": "tool_execution_start", **call, "args": {}}, tool_end)
    assert [e.tool.duration_ms for e in found if isinstance(e, ToolEnd)] == [12]


def test_a_retried_summary_does_not_end_the_run() -> None:
    again = {"type": "summarization_retry_scheduled", "attempt": 1, "delayMs": 2000, "errorMessage": "529 overloaded"}
    rest = [{"type": "summarization_retry_attempt_start"}, {"type": "summarization_retry_finished"}]
    found = events(HEADER, START, again, *rest, message(words(MARKER)), end(willRetry=False), SETTLED)
    assert [(r["class"], r["attempt"], r["delay_ms"]) for r in metas(found, "retry")] == [("overloaded", 1, 2000)]
    assert metas(found, "unknown") == []
    assert [r["ok"] for r in metas(found, "result")] == [True]


def test_a_call_reported_by_its_result_only_has_a_name() -> None:
    stop = {"type": "tool_execution_end", "toolCallId": "a", "toolName": "bash", "result": "out", "isError": False}
    found = events(HEADER, START, stop)
    assert [e.tool.name for e in found if isinstance(e, ToolStart | ToolEnd)] == ["bash", "bash"]
