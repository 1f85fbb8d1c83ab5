"""Claude Code: odd, broken and old lines."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fuzz.damage import damaged, recorded
from hypothesis import given
from hypothesis import strategies as st

from agents.claude.messages import MARKER, assistant, metas, result, run, said, texts, verdict
from ralph.agents.claude.adapter import ClaudeAdapter
from ralph.judging.replay import replay
from ralph.transcripts.events import (
    Meta,
    Tag,
    Text,
    ToolStart,
    UsageEvent,
    decode,
    encode,
)

# -- odd lines


def test_unknown_types_are_kept_whole_and_known_noise_is_dropped() -> None:
    new = {"type": "brand_new", "session_id": "s", "x": [1]}
    events = run(new, {"type": "system", "subtype": "novel"}, {"type": "keep_alive"}, result("ok"))
    assert [m["line"] for m in metas(events, "unknown")] == [new, {"type": "system", "subtype": "novel"}]
    assert metas(events, "session") == [{"kind": "session", "session_id": "s"}]


def test_missing_or_odd_fields_cost_only_themselves() -> None:
    odd: list[dict[str, Any]] = [
        {"type": "assistant"},
        {"type": "assistant", "message": {"content": "plain words"}},
        {
            "type": "assistant",
            "message": {"content": [None, 7, {"type": "text"}, {"type": ["x"]}, {"type": "tool_use"}]},
        },
        {"type": "user", "message": None},
        {"type": "stream_event", "event": 5},
        {"type": "content_block_delta", "delta": "x"},
        {"type": "system", "subtype": {}},
        {"type": "rate_limit_event", "rate_limit_info": []},
        {
            "type": "result",
            "result": 7,
            "usage": "none",
            "permission_denials": {},
            "modelUsage": [],
            "total_cost_usd": "x",
        },
    ]
    events = run(*odd)
    assert "plain words" in texts(events, Tag.AI)
    assert [e.tool.name for e in events if isinstance(e, ToolStart)] == ["tool"]
    assert metas(events, "result")[0]["ok"] is True
    assert not [e for e in events if isinstance(e, UsageEvent)]


def test_unicode_line_separators_do_not_split_a_string() -> None:
    words = f"a\u2028b\u2029c\u0085d\n{MARKER}"
    data = json.dumps(assistant(said(words)), ensure_ascii=False)
    assert verdict(data, result(words))["completed"] is True


def test_json_in_text_output_is_the_agents_words() -> None:
    events = run('{"name": "demo"}', "[1, 2]", "{", '  "type": "module"', "}", MARKER)
    assert texts(events, Tag.AI) == ['{"name": "demo"}', "[1, 2]", '{\n  "type": "module"\n}', MARKER]


def test_escape_sequences_do_not_prevent_completion() -> None:
    assert verdict(f"Done.\r\n\r\n{MARKER}\r\n\x1b[?25h")["completed"] is True


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        ("Invalid API key · Please run /login", "auth"),
        ('API Error: 429 {"type":"error","error":{"type":"rate_limit_error"}}', "rate_limited"),
        ("Credit balance is too low", "quota"),
    ],
)
def test_an_error_is_recognised_in_text_output_if_it_is_the_only_line(line: str, outcome: str) -> None:
    assert verdict(line, exit_code=1)["outcome"] == outcome
    assert verdict(line, "That is what the log said.")["outcome"] == "ok"


def test_verbose_json_is_a_list_of_all_events() -> None:
    lines = [{"type": "system", "subtype": "init", "session_id": "s"}, assistant(said(MARKER)), result(MARKER)]
    seen = verdict(lines)
    assert (seen["completed"], seen["session_id"]) == (True, "s")


# -- arbitrary lines


REAL = recorded("claude")


@given(st.lists(damaged(REAL), min_size=1, max_size=6))
def test_lines_of_other_releases_never_raise(lines: list[str]) -> None:
    for event in run(*lines):
        decode(encode(event))


@given(st.sampled_from(REAL), st.data())
def test_a_truncated_line_is_shown(line: str, data: st.DataObject) -> None:
    adapter = ClaudeAdapter()
    adapter.feed(json.dumps(result("x")))
    half = line[: data.draw(st.integers(2, len(line) - 1))]
    [problem, text] = adapter.feed(half)
    assert isinstance(problem, Meta)
    assert problem.meta["kind"] == "parse_error"
    assert text == Text(Tag.SYS, half)


@given(st.lists(st.text(st.characters(exclude_characters="\n\x1b\r"), min_size=1).filter(lambda s: s[0] not in "{[")))
def test_no_line_of_text_is_lost(lines: list[str]) -> None:
    plain = ClaudeAdapter()
    assert [plain.feed(line) for line in lines] == [[Text(Tag.AI, line)] for line in lines]
    structured = ClaudeAdapter()
    structured.feed(json.dumps(result("x")))
    assert [structured.feed(line) for line in lines] == [[Text(Tag.SYS, line)] for line in lines]


def test_a_lone_brace_does_not_swallow_the_lines_after_it() -> None:
    assert verdict(assistant(said("Hm.")), "{", assistant(said(MARKER)), result(MARKER))["completed"] is True


# -- releases older than the recordings


def test_an_event_in_text_output_is_the_agents_words() -> None:
    lines = ["This is how it ends:", json.dumps(result("not an event")), "", MARKER]
    *_, (last, _) = replay("\n".join(lines).encode(), b"", "claude", 0, None, None)
    assert isinstance(last[0], Meta)
    assert (last[0].meta["outcome"], last[0].meta["completed"]) == ("ok", True)


@pytest.mark.parametrize("line", ["Execution error", "Error: Reached max turns (1)"])
def test_an_error_instead_of_an_answer_in_text_format_is_a_failure(line: str) -> None:
    *_, (last, _) = replay(line.encode(), b"", "claude", 0, None, None)
    assert isinstance(last[0], Meta)
    assert last[0].meta["outcome"] == "failed"


def test_a_refused_tool_counts_even_if_the_result_lists_no_denials() -> None:
    refusal = "Claude requested permissions to write to /x, but you haven't granted it yet."
    block = {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": refusal}
    line = {"type": "user", "message": {"content": [block]}, "session_id": "s"}
    assert verdict(line, result("Done."))["outcome"] == "permission_denied"
    assert verdict(line, result("Done.", permission_denials=[]))["outcome"] == "ok"
    assert verdict({**line, "message": {"content": [block | {"is_error": False}]}}, result("Done."))["outcome"] == "ok"


def test_a_rate_limit_in_text_output_has_its_wait() -> None:
    seen = verdict("API Error: 429 rate limit reached, please retry in 20 seconds", exit_code=1)
    assert (seen["outcome"], seen["retry_after"]) == ("rate_limited", 20)
