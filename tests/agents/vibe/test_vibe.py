"""Mistral Vibe, tested against its documentation: journal entries, an array of them, text."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from fuzz.damage import damaged, text_line, words_line
from hypothesis import given
from hypothesis import strategies as st

from agents.reading import events_of, texts, verdict_of
from ralph.transcripts.events import (
    Meta,
    Tag,
    Text,
    ToolEnd,
    ToolOutput,
    ToolStart,
    ToolStatus,
    TranscriptEvent,
    decode,
    encode,
)

events = partial(events_of, "vibe")
verdict = partial(verdict_of, "vibe")
MARKER = "<promise>COMPLETE</promise>"


def entry(kind: str, identity: str, **more: Any) -> dict[str, Any]:
    common = {"id": identity, "sessionId": "s-1", "turnId": "t-1", "type": kind, "createdAt": "2026-11-15T00:00:00Z"}
    return {**common, "generationStatus": "completed", **more}


def message(text: str, identity: str = "m1", role: str = "assistant", **more: Any) -> dict[str, Any]:
    return entry("message", identity, role=role, content=[{"type": "text", "text": text}], **more)


def effect(identity: str = "e1", name: str = "bash", **state: Any) -> dict[str, Any]:
    detail = {"toolName": name, "kind": "tool", "input": {"command": "ls"}}
    return entry("effect", identity, detail=detail, state={"status": "completed", **state})


PROMPT = message(f"Say {MARKER} when done.", "p", "user")
THOUGHT = entry("reasoning", "r", content=[{"type": "text", "text": "Let me look."}])
LINES = [
    json.dumps(line) for line in (PROMPT, THOUGHT, message("Hello."), effect(outputText="x", display={"success": True}))
]


def ends(found: list[TranscriptEvent]) -> list[ToolStatus]:
    return [e.tool.status for e in found if isinstance(e, ToolEnd)]


def test_streaming_and_json_give_the_same_run() -> None:
    lines = [PROMPT, THOUGHT, message("I'll look.", "m0"), effect(outputText="x\n"), message(f"Done.\n\n{MARKER}\n")]
    found = events(*lines)
    assert texts(found) == ["I'll look.", f"Done.\n\n{MARKER}"]
    assert texts(found, Tag.THINK) == ["Let me look."]
    assert texts(found, Tag.PROMPT) == [f"Say {MARKER} when done."]
    assert [(e.tool.id, e.tool.name) for e in found if isinstance(e, ToolStart)] == [("e1", "bash")]
    assert [e.text for e in found if isinstance(e, ToolOutput)] == ["x\n"]
    keyring = "Reading API keys from the system keyring\n"
    for form in (lines, json.dumps(lines, indent=2).split("\n")):
        seen = verdict(*form, stderr=keyring)
        assert (seen["outcome"], seen["completed"], seen["session_id"]) == ("ok", True, "s-1")
        assert seen["tools"] == {"started": 1, "ok": 1, "fail": 0, "unknown": 0}


@pytest.mark.parametrize(
    ("state", "status", "shown"),
    [
        (
            {"display": {"success": False}, "output": {"stdout": "out\n", "stderr": "err\n"}},
            ToolStatus.FAIL,
            "out\nerr\n",
        ),
        ({"display": {"success": True}, "outputText": "fine"}, ToolStatus.OK, "fine"),
        ({"status": "failed", "error": "no such file"}, ToolStatus.FAIL, "no such file"),
        ({"status": "running"}, ToolStatus.UNKNOWN, ""),
        ({"output": {"matches": 3}}, ToolStatus.OK, '{"matches":3}'),
    ],
)
def test_tool_status_and_output(state: dict[str, Any], status: ToolStatus, shown: str) -> None:
    found = events(PROMPT, effect(**state), message("x"))
    assert ends(found) == [status]
    assert "".join(e.text for e in found if isinstance(e, ToolOutput)) == shown


def test_calls_without_an_id_are_separate_calls() -> None:
    nameless = {key: value for key, value in effect(outputText="x").items() if key != "id"}
    found = events(PROMPT, nameless, nameless, message("x"))
    assert len({e.tool.id for e in found if isinstance(e, ToolStart)}) == 2


def test_a_repeated_entry_is_shown_once() -> None:
    assert texts(events(PROMPT, message("Hi."), message("Hi."))) == ["Hi."]


def test_earlier_messages_of_a_resumed_session_do_not_complete() -> None:
    old = [PROMPT, message(MARKER)]
    new = message("Go on.", "p2", "user")
    assert verdict(*old, new)["outcome"] == "failed"
    assert not verdict(*old, new, message("Not yet.", "m2"))["completed"]
    assert verdict(*old, new, message(MARKER, "m2"))["completed"]


def test_a_refused_tool_needs_a_person_unless_it_ran_later() -> None:
    refused = effect(status="denied")
    assert verdict(PROMPT, refused, message(MARKER))["outcome"] == "permission_denied"
    later = effect("e2", display={"success": True})
    assert verdict(PROMPT, refused, later, message(MARKER))["completed"]


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        ("Error: API error: 401 Unauthorized", "auth"),
        ("Error: Rate limits exceeded. Please wait and retry after 5 s (429)", "rate_limited"),
        ("Error: LLM backend error: status 503 Service Unavailable", "overloaded"),
        ("Stopped: turn_limit", "failed"),
        ("Stopped: terminated", "failed"),
    ],
)
def test_errors_are_on_stderr(line: str, outcome: str) -> None:
    assert verdict(PROMPT, message(MARKER), stderr=line + "\n", code=2)["outcome"] == outcome
    assert verdict(PROMPT, line, code=2)["outcome"] == outcome  # on a terminal
    assert verdict(stderr=line + "\n", code=2)["outcome"] == outcome


def test_text() -> None:
    lines = ['{"type": "message"}', "Done.", "", MARKER]
    assert texts(events(*lines)) == lines
    assert verdict(*lines)["completed"]


def test_unknown_types_are_kept_whole_and_mistyped_fields_are_skipped() -> None:
    new = entry("checkpoint", "c")
    found = events(PROMPT, new, entry("message", "m", role=3), entry("effect", "e", detail=5, state=[]), message("x"))
    assert [e.meta["line"] for e in found if isinstance(e, Meta) and e.meta["kind"] == "unknown"] == [new]
    assert ends(found) == [ToolStatus.UNKNOWN]


def test_line_separators_inside_a_string_do_not_split_it() -> None:
    text = "one\u2028two\u2029three\u0085four"
    assert texts(events(PROMPT, message(text))) == [text]


@given(st.lists(damaged(LINES) | text_line(), max_size=12))
def test_damaged_lines_never_raise_and_their_events_can_be_encoded(lines: list[str]) -> None:
    for event in events(*lines, stderr="\n".join(lines)):
        decode(encode(event))


@given(st.lists(words_line(), min_size=1, max_size=10), st.booleans())
def test_no_line_of_text_is_lost(lines: list[str], structured: bool) -> None:
    found = events(*([message("", "m")] if structured else []), *lines)
    assert [e.text for e in found if isinstance(e, Text)] == lines
