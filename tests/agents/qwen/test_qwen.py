"""Qwen Code, beyond the recordings: release 0.15.10, damaged lines, errors that appear only on stderr."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from fuzz.damage import damaged, recorded, text_line, words_line
from hypothesis import given
from hypothesis import strategies as st

from agents.reading import events_of, metas, texts, verdict_of
from ralph.transcripts.events import Tag, Text, decode, encode

events = partial(events_of, "qwen")
verdict = partial(verdict_of, "qwen")
REAL = recorded("qwen")
MARKER = "<promise>COMPLETE</promise>"
INIT = {"type": "system", "subtype": "init", "session_id": "s-1", "model": "m", "tools": []}
USAGE = {"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 60, "total_tokens": 120}


def assistant(text: str, usage: dict[str, Any] | None = None) -> dict[str, Any]:
    message = {"id": text[:9], "model": "m", "content": [{"type": "text", "text": text}], "usage": usage or USAGE}
    return {"type": "assistant", "session_id": "s-1", "parent_tool_use_id": None, "message": message}


def delta(text: str) -> dict[str, Any]:
    event = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    return {"type": "stream_event", "session_id": "s-1", "parent_tool_use_id": None, "event": event}


def result(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": False, "result": text, "usage": USAGE, **more}


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        ("[API Error: 401 Incorrect API key provided: fake-key.]", "auth"),
        ("[API Error: 400 This model's maximum context length is 128000 tokens.]", "context_exceeded"),
        ("[API Error: 404 The model does not exist]", "failed"),
        ("[API Error: 500 Internal server error]", "overloaded"),
        ("[API Error: 429 You exceeded your current quota, please check your plan and billing details.]", "quota"),
        ("[API Error: Model stream ended with empty response text.]", "failed"),
        (
            "[API Error: 429 Rate limit reached, please retry in 2s.]\nPossible quota limitations in place.",
            "rate_limited",
        ),
    ],
)
def test_an_error_reported_as_a_success_is_a_failure(error: str, outcome: str) -> None:
    """0.15.10 exits with 0 and a `result/success`, and prints the error as the agent's words."""
    lines = (INIT, assistant(error), result(error))
    assert verdict(*lines)["outcome"] == outcome
    assert texts(events(*lines)) == []
    assert "".join(texts(events(*lines), Tag.SYS)) == error
    assert verdict(json.dumps(lines))["outcome"] == outcome  # the json format


def test_words_before_a_broken_stream_belong_to_the_agent() -> None:
    text = f"I'll look.\n{MARKER}\n[API Error: terminated (cause: other side closed)]"
    seen = verdict(INIT, assistant(text), result(text))
    assert (seen["outcome"], seen["completed"]) == ("failed", False)
    assert texts(events(INIT, assistant(text), result(text))) == [f"I'll look.\n{MARKER}\n"]


def test_an_error_that_the_agent_quotes_is_ignored() -> None:
    text = f"The log had [API Error: 401 x], see [docs].\n{MARKER}"
    assert verdict(INIT, assistant(text), result(text))["completed"]


def test_an_error_in_fragments_is_not_the_agents_words() -> None:
    error = "[API Error: 401 no]"
    found = events(INIT, delta("Well. "), delta(error), assistant("Well. " + error), result("Well. " + error))
    assert texts(found) == ["Well. "]
    assert metas(found, "result")[0]["ok"] is False


def test_a_marker_split_over_fragments_is_shown_once_on_one_line() -> None:
    text = f"Done.\n\n{MARKER}\n"
    lines = (INIT, *(delta(c) for c in text), assistant(text), result(text))
    assert "\n".join(texts(events(*lines))).count(MARKER) == 1
    assert verdict(*lines)["completed"]


def test_input_tokens_include_cached_tokens() -> None:
    usage = verdict(INIT, assistant("Hi."), result("Hi."))["usage"]
    assert (usage["prompt_tokens"], usage["cached_tokens"], usage["total_tokens"]) == (100, 60, 120)


def test_messages_are_added_up_if_there_is_no_result() -> None:
    seen = verdict(
        INIT, assistant("One."), assistant("Two."), stderr="Reached max session turns for this session.", code=53
    )
    assert seen["usage"]["prompt_tokens"] == 200
    assert "max session turns" in seen["why"]


def test_no_result_is_a_failure_even_with_exit_code_0() -> None:
    assert verdict(INIT, assistant(MARKER))["outcome"] == "failed"
    cut = json.dumps([INIT, assistant(MARKER), result(MARKER)])[:-30]
    assert verdict(cut)["outcome"] == "failed"
    assert texts(events(cut)) == []


def test_a_run_may_have_two_results() -> None:
    assert len(metas(events(INIT, result("a"), result("b")), "result")) == 2


def test_a_retry_is_reported_once_with_its_cause_from_stderr() -> None:
    stderr = "Retrying in 60s (attempt 1/10): [API Error: 503 The model is overloaded.]\n"
    lines = [
        {"type": "system", "subtype": "retry", "data": {"reason": "retry", "attempt": 1, "delayMs": 60000}},
        {"type": "system", "subtype": "retry", "data": {"reason": "retry"}},
    ]
    (retry,) = metas(events(INIT, *lines, stderr=stderr), "retry")
    assert (retry["class"], retry["attempt"], retry["delay_ms"]) == ("overloaded", 1, 60000)
    assert verdict(INIT, *lines, stderr=stderr, code=-9)["outcome"] == "overloaded"
    assert len(metas(events(INIT, *lines), "retry")) == 1
    assert verdict(INIT, *lines, assistant(MARKER), result(MARKER), stderr=stderr)["completed"]


def test_denied_tools_need_a_person() -> None:
    seen = verdict(INIT, assistant(MARKER), result(MARKER, permission_denials=[{"tool_name": "write_file"}]))
    assert (seen["outcome"], seen["completed"]) == ("permission_denied", False)


@pytest.mark.parametrize(("code", "status"), [(0, "ok"), (3, "fail"), (137, "fail")])
def test_the_exit_code_of_a_command_decides_its_status(code: int, status: str) -> None:
    use = {"type": "tool_use", "id": "c", "name": "run_shell_command", "input": {"command": "x"}}
    text = f"Command: x\nDirectory: (root)\nOutput: a\nError: (none)\nExit Code: {code}\nSignal: (none)"
    end = {"type": "tool_result", "tool_use_id": "c", "is_error": False, "content": text}
    call = {"type": "assistant", "message": {"content": [use]}}
    seen = verdict(INIT, call, {"type": "user", "message": {"content": [end]}}, assistant("x"), result("x"))
    assert seen["tools"][status] == 1


def test_unknown_types_and_unicode_line_separators_are_kept() -> None:
    new = {"type": "weather", "session_id": "s-1"}
    text = "one\u2028two\u0085three"
    found = events(INIT, new, assistant(text), result(text))
    assert metas(found, "unknown") == [{"kind": "unknown", "line": new}]
    assert texts(found) == [text]


def test_an_error_is_recognised_as_the_last_line_of_text_output() -> None:
    assert verdict("I'll look.", "[API Error: 401 no]", code=1)["outcome"] == "auth"
    assert verdict("[API Error: 401 no] is what I saw; fixed.", MARKER)["completed"]


def test_json_in_text_output_is_the_agents_words() -> None:
    assert verdict('{"name": "demo"}', "[", "1", "]", MARKER)["completed"]


@given(st.lists(damaged(REAL) | text_line(), max_size=12))
def test_nothing_raises_and_every_event_can_be_written(lines: list[str]) -> None:
    for event in events(*lines, stderr="\n".join(lines)):
        decode(encode(event))


@given(st.lists(words_line(), min_size=1, max_size=10), st.booleans())
def test_no_line_of_text_is_lost(lines: list[str], structured: bool) -> None:
    found = events(*([INIT] if structured else []), *lines)
    assert [e.text for e in found if isinstance(e, Text)] == lines


OLD = {
    "response": f"Done.\n\n{MARKER}\n",
    "stats": {
        "models": {"m": {"tokens": {"prompt": 4150, "candidates": 222, "total": 4372, "cached": 2304, "thoughts": 0}}},
        "tools": {"byName": {"run_shell_command": {"count": 2, "success": 1, "fail": 1}}},
    },
}


def test_the_first_releases_print_gemini_cli_json() -> None:
    lines = json.dumps(OLD, indent=2).split("\n")
    seen = verdict(*lines)
    assert (seen["outcome"], seen["completed"]) == ("ok", True)
    assert seen["tools"] == {"started": 2, "ok": 1, "fail": 1, "unknown": 0}
    assert (seen["usage"]["prompt_tokens"], seen["usage"]["completion_tokens"]) == (4150, 222)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        ("401 Incorrect API key provided.", "auth"),
        ("429 Rate limit reached.", "rate_limited"),
        ("terminated", "failed"),
    ],
)
def test_the_first_releases_report_a_failure_only_on_stderr(error: str, outcome: str) -> None:
    stderr = f"OpenAI API Streaming Error: {error}\nError when talking to API Full report available at: x.json"
    assert verdict(*json.dumps({**OLD, "response": ""}, indent=2).split("\n"), stderr=stderr)["outcome"] == outcome
    assert verdict("First I look", stderr=stderr)["outcome"] == outcome
