"""Goose, beyond the recordings: other releases, errors that look like the agent's messages, damaged lines."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fuzz.damage import damaged, recorded, text_line, words_line
from hypothesis import given
from hypothesis import strategies as st

from agents.reading import events_of, metas, texts, verdict_of
from ralph.transcripts.events import (
    Tag,
    Text,
    ToolEnd,
    ToolOutput,
    ToolStart,
    ToolStatus,
    Usage,
    UsageEvent,
    decode,
    encode,
)

events = partial(events_of, "goose")
verdict = partial(verdict_of, "goose")
FIXTURES = Path(__file__).parents[2] / "fixtures" / "goose" / "1.52.0"
REAL = recorded("goose")
MARKER = "<promise>COMPLETE</promise>"
#: The metadata of a message that a model wrote, and of one that goose wrote.
BY_A_MODEL = {"userVisible": True, "agentVisible": True, "inference": {"provider": "openai", "requestedModel": "m"}}
BY_GOOSE = {"userVisible": True, "agentVisible": True}
DONE = {"type": "complete", "total_tokens": 12, "input_tokens": 10, "output_tokens": 2}
ERROR = "Ran into this error: {}.\n\nPlease retry if you think this is a transient or recoverable error."
BANNER = [
    "",
    "    __( O)>  ● new session · openai m",
    "   \\____)    20261115_7 · /repo",
    "     L L     goose is ready",
]


def message(
    *blocks: Any, role: str = "assistant", key: str | None = "m1", metadata: Any = BY_A_MODEL
) -> dict[str, Any]:
    inner = {"id": key, "role": role, "created": 1, "content": list(blocks), "metadata": metadata}
    return {"type": "message", "message": inner}


def word(text: Any, key: str = "m1", metadata: Any = BY_A_MODEL) -> dict[str, Any]:
    return message({"type": "text", "text": text}, key=key, metadata=metadata)


def request(call: str = "c1", name: str = "shell") -> dict[str, Any]:
    call_of = {"status": "success", "value": {"name": name, "arguments": {"command": "ls"}}}
    return message({"type": "toolRequest", "id": call, "toolCall": call_of})


def response(result: Any, call: str = "c1") -> dict[str, Any]:
    return message({"type": "toolResponse", "id": call, "toolResult": result}, role="user", key="u", metadata=BY_GOOSE)


def text_result(text: str, **more: Any) -> dict[str, Any]:
    return {"status": "success", "value": {"content": [{"type": "text", "text": text}], **more}}


def test_a_marker_split_over_fragments_is_one_line() -> None:
    fragments = [word(c) for c in f"Done.\n\n{MARKER}\n"]
    assert MARKER in texts(events(*fragments, DONE))
    assert verdict(*fragments, DONE)["completed"]


def test_fragments_of_two_messages_are_not_joined() -> None:
    assert texts(events(word("one"), word("two", key="m2"), DONE)) == ["one", "two"]


def test_fragments_without_an_id_are_joined() -> None:
    lines = [
        message({"type": "text", "text": text}, key=None, metadata={}) for text in ("<promise>", "COMPLETE</promise>")
    ]
    assert texts(events(*lines, DONE)) == [MARKER]


def test_messages_of_a_document_are_not_joined() -> None:
    parts = [{"role": "assistant", "content": [{"type": "text", "text": text}]} for text in ("one", "two")]
    assert texts(events({"messages": parts, "metadata": {"status": "completed"}})) == ["one", "two"]


def test_a_thought_that_is_repeated_whole_is_shown_once() -> None:
    thoughts = [
        message({"type": "thinking", "thinking": t, "signature": s}) for t, s in (("a ", ""), ("b", ""), ("a b", "x"))
    ]
    assert texts(events(*thoughts, word("hi"), DONE), Tag.THINK) == ["a b"]


def test_unicode_line_separators_do_not_split_a_string() -> None:
    text = "one\u2028two\u2029three\u0085four"
    assert texts(events(word(text), DONE)) == [text]


def test_the_banner_names_the_session_and_is_not_the_agents_text() -> None:
    found = events(*BANNER, word("hi"), DONE)
    assert metas(found, "session") == [{"kind": "session", "session_id": "20261115_7", "model": "m"}]
    assert texts(found) == ["hi"]


def test_the_banner_of_older_releases() -> None:
    old = [
        "starting session | provider: openai model: gpt-4o",
        "    session id: 20250801_3",
        "    working directory: /repo",
    ]
    found = events(*old, "Hello.", MARKER)
    assert metas(found, "session") == [{"kind": "session", "session_id": "20250801_3", "model": "gpt-4o"}]
    assert texts(found) == ["Hello.", MARKER]


@pytest.mark.parametrize("by", [BY_GOOSE, {}, None])
@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (ERROR.format("Rate limit exceeded: try again in 2s"), "rate_limited"),
        (ERROR.format("Server error: Server error (503 Service Unavailable) at http://h/v1"), "overloaded"),
        (ERROR.format("Authentication error: Status: 401 Unauthorized"), "auth"),
        (ERROR.format("Authentication error: Status: 403 Forbidden. Response: permission denied"), "auth"),
        (ERROR.format("Request failed: Resource not found (404)"), "failed"),
        (ERROR.format("Rate limit exceeded: You exceeded your current quota, check your plan and billing"), "quota"),
        ("Ran into this error trying to compact: Rate limit exceeded: 429", "rate_limited"),
        ("Ran into this error trying to compact: no room", "context_exceeded"),
        ("Network error: Could not connect.\n\nPlease resend your message to try again.", "failed"),
        ("Unable to continue: Context limit still exceeded after compaction.", "context_exceeded"),
        ("The model returned an empty response. Please resend your message to continue.", "empty"),
    ],
)
def test_an_error_that_looks_like_the_agents_message_is_recognised(text: str, outcome: str, by: Any) -> None:
    found = events(word("I'll look."), word(text, "e", by), DONE)
    assert texts(found) == ["I'll look."]
    assert verdict(word(f"{MARKER}\n"), word(text, "e", by), DONE)["outcome"] == outcome


def test_a_model_may_quote_an_error() -> None:
    assert verdict(word(ERROR.format("429 Too Many Requests") + f"\n{MARKER}\n"), DONE)["completed"]
    assert verdict(word(ERROR.format("429")), word(MARKER, "m2"), DONE)["completed"]


def test_an_error_does_not_count_if_the_model_continues() -> None:
    assert verdict(word(ERROR.format("500"), "e", BY_GOOSE), word(MARKER, "m2"), DONE)["completed"]


def test_a_message_from_goose_that_is_not_an_error_is_the_answer() -> None:
    """A recipe's final output comes without the name of a model."""
    assert verdict(word("Writing."), word(f"{MARKER}\n", "f", BY_GOOSE), DONE)["completed"]


def test_a_notification_of_exhausted_credits_is_a_quota_error() -> None:
    block = {"type": "systemNotification", "notificationType": "creditsExhausted", "msg": "Please add credits."}
    assert verdict(message(block, metadata=BY_GOOSE), DONE)["outcome"] == "quota"
    other = {**block, "notificationType": "inlineMessage", "msg": "Compacting..."}
    assert verdict(message(other, metadata=BY_GOOSE), word(MARKER), DONE)["completed"]


def test_a_summary_hidden_from_the_user_is_not_the_agents_text() -> None:
    hidden = word(MARKER, "s", {"userVisible": False, "agentVisible": True})
    seen = verdict(hidden, word("Going on.", "m2"), DONE)
    assert (seen["outcome"], seen["completed"]) == ("ok", False)


@pytest.mark.parametrize(
    ("result", "status"),
    [
        (text_result("fine", isError=False), ToolStatus.OK),
        (text_result("bad", isError=True), ToolStatus.FAIL),
        (text_result("x", structuredContent={"stdout": "x", "exit_code": 3}), ToolStatus.FAIL),
        ({"status": "success", "value": [{"type": "text", "text": "old"}]}, ToolStatus.OK),
        ({"status": "error", "error": "-32603: no such tool"}, ToolStatus.FAIL),
        ({}, ToolStatus.UNKNOWN),
        ("?", ToolStatus.UNKNOWN),
    ],
)
def test_the_status_of_a_call(result: Any, status: ToolStatus) -> None:
    found = events(request(), response(result), response(result), word("x"), DONE)
    assert [(e.tool.id, e.tool.name) for e in found if isinstance(e, ToolStart)] == [("c1", "shell")]
    assert [(e.tool.id, e.tool.name, e.tool.status) for e in found if isinstance(e, ToolEnd)] == [
        ("c1", "shell", status)
    ]


def test_a_refused_tool_needs_a_person_unless_it_runs_later() -> None:
    no = text_result("The user has declined to run this tool. DO NOT attempt to call this tool again.")
    refused = verdict(request(), response(no), word(MARKER), DONE)
    assert (refused["outcome"], refused["completed"]) == ("permission_denied", False)
    again = [request("c2"), response(text_result("ok", isError=False), "c2")]
    assert verdict(request(), response(no), *again, word(MARKER), DONE)["completed"]
    printed = text_result("The user has declined to run this tool.", structuredContent={"exit_code": 0})
    assert verdict(request(), response(printed), word(MARKER), DONE)["completed"]


def test_a_run_without_a_complete_line_is_a_failure_even_with_exit_code_0() -> None:
    assert verdict(word(MARKER + "\n"))["outcome"] == "failed"
    assert verdict(word(MARKER + "\n"), stderr="Error: \n")["outcome"] == "failed"


def test_a_truncated_complete_line_is_shown_and_does_not_count() -> None:
    last = json.dumps(DONE)[:30]
    assert last in texts(events(word("Hi."), last), Tag.SYS)
    assert verdict(word(MARKER), last)["outcome"] == "failed"


def test_the_second_of_two_results_counts() -> None:
    assert len(metas(events(word("x"), DONE, DONE), "result")) == 2
    assert verdict(word(MARKER), DONE, {"type": "error", "error": "broken"})["outcome"] == "failed"


def test_an_event_after_text_on_the_same_line_is_read() -> None:
    found = events(word("Sleeping."), 'What now?{"type":"error","error":"Headless run interrupted"}')
    assert "What now?" in texts(found, Tag.SYS)
    assert [e["message"] for e in metas(found, "error")] == ["Headless run interrupted"]
    assert texts(events(word("a"), 'x {"type":"error"', DONE), Tag.SYS) == ['x {"type":"error"']


def test_older_releases_report_only_the_total_of_tokens() -> None:
    found = events(word("hi", metadata={}), {"type": "complete", "total_tokens": 7})
    assert [e.usage for e in found if isinstance(e, UsageEvent)] == [Usage(total_tokens=7)]
    assert not [e for e in events(word("hi"), {"type": "complete", "total_tokens": None}) if isinstance(e, UsageEvent)]


def test_the_document_of_a_resumed_session_shows_only_this_run() -> None:
    def part(role: str, text: str, by: Any = BY_GOOSE) -> dict[str, Any]:
        return {"id": None, "role": role, "created": 1, "content": [{"type": "text", "text": text}], "metadata": by}

    old = [part("user", "first"), part("assistant", MARKER, BY_A_MODEL)]
    new = [part("user", "second"), part("assistant", "Not yet.", BY_A_MODEL)]
    document = {"messages": old + new, "metadata": {"total_tokens": 3, "status": "completed"}}
    assert texts(events(document)) == ["Not yet."]
    assert not verdict(document)["completed"]
    assert verdict({**document, "messages": new[:1] + old[1:]})["completed"]
    assert verdict({**document, "metadata": {"status": "error"}})["outcome"] == "failed"


def test_a_truncated_document_is_not_the_agents_text() -> None:
    whole = (FIXTURES / "json-success.json").read_text().split("\n")
    assert verdict(*whole)["completed"]
    assert verdict(*whole[:-5])["outcome"] == "failed"
    assert texts(events(*whole[:-5])) == []


def test_json_in_a_text_answer_is_text() -> None:
    lines = ['{"type": "module"}', "{", '  "type": "complete"', "}", '[{"a": 1}]', MARKER]
    assert "\n".join(texts(events(*lines))).split("\n") == lines
    assert verdict(*lines)["completed"]


def test_errors_at_the_end_of_a_text_answer() -> None:
    advice = ["", "Please retry if you think this is a transient or recoverable error."]
    assert verdict(*BANNER, "file.txtRan into this error: Server error: 503.", *advice)["outcome"] == "overloaded"
    assert verdict(MARKER, "Ran into this error: Rate limit exceeded.", *advice)["outcome"] == "rate_limited"
    assert verdict("I Ran into this error: 503.", *advice, MARKER)["completed"]
    turns = "I've reached the maximum number of actions I can do without user input. Would you like me to continue?"
    assert verdict("loop 2" + turns)["outcome"] == "failed"
    nothing = "The model returned an empty response. Please resend your message to continue."
    assert verdict(*BANNER, nothing)["outcome"] == "empty"
    assert verdict("file.txt" + nothing)["outcome"] == "empty"
    full = ["Ran into this error trying to compact: no room.", "", "Please try again or create a new session"]
    assert verdict(*BANNER, *full)["outcome"] == "context_exceeded"


def test_an_approval_mode_needs_a_person() -> None:
    line = "Error: Tool approval required in non-interactive mode with GooseMode::approve."
    assert verdict("I'll look.", stderr=line + "\n", code=1)["outcome"] == "permission_denied"
    assert verdict(word("I'll look."), request(), line, code=1)["outcome"] == "permission_denied"  # on a terminal


def test_escape_sequences_are_ignored() -> None:
    lines = [
        "\x1b[2m   \\____)\x1b[0m    \x1b[2m20261115_7 · /repo\x1b[0m\r",
        "\x1b[?25l" + json.dumps(word(MARKER)) + "\r",
        json.dumps(DONE) + "\r\x1b[?25h",
    ]
    assert verdict(*lines)["completed"]
    assert verdict(*lines)["session_id"] == "20261115_7"


def test_unknown_types_and_blocks_are_reported_whole() -> None:
    new = {"type": "checkpoint", "id": 5}
    block = {"type": "hologram", "data": 1}
    found = events(word("a"), new, message(block), DONE)
    assert [e["line"] for e in metas(found, "unknown")] == [new, block]


def test_notifications_and_changes_of_the_model() -> None:
    log = {"type": "notification", "extension_id": "developer", "log": {"message": f"subagent: {MARKER}"}}
    found = events(word("a"), {"type": "model_change", "model": "m9", "mode": "lead"}, log, DONE)
    assert texts(found, Tag.SYS) == [f"subagent: {MARKER}"]
    assert [e.usage.model for e in found if isinstance(e, UsageEvent)] == ["m9"]


def test_a_field_of_an_unexpected_type_costs_only_that_field() -> None:
    found = events(
        word(""),
        {"type": "message", "message": 5},
        message("?", None, {"type": "text", "text": 5}, {"type": "toolRequest"}, {"type": "toolResponse", "id": "x"}),
        {"type": "message", "message": {"role": "assistant", "content": "plain", "metadata": []}},
        {"type": "error", "error": {"message": "odd"}},
        {"type": "complete", "input_tokens": "many", "output_tokens": True},
    )
    assert texts(found) == ["plain"]
    assert [e.tool.id for e in found if isinstance(e, ToolStart)] == ["x"]
    assert not [e for e in found if isinstance(e, ToolOutput | UsageEvent)]


@given(st.lists(damaged(REAL) | text_line(), max_size=12))
def test_damaged_lines_never_raise_and_every_event_can_be_encoded(lines: list[str]) -> None:
    for event in events(*lines, stderr="\n".join(lines)):
        decode(encode(event))


@given(st.lists(words_line(), min_size=1, max_size=10), st.booleans())
def test_no_line_of_text_is_lost(lines: list[str], structured: bool) -> None:
    found = events(*([word("")] if structured else []), *lines)
    assert [e.text for e in found if isinstance(e, Text)] == lines
