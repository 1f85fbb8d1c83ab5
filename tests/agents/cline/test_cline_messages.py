"""Cline before release 3: its chat as JSON, following its schema."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.reading import texts
from ralph.judging.replay import replay
from ralph.transcripts import recent
from ralph.transcripts.events import Meta, Tag, ToolEnd, ToolOutput, ToolStart, ToolStatus, TranscriptEvent

MARKER = "<promise>COMPLETE</promise>"
STARTED = {"type": "task_started", "taskId": "1770"}


def say(kind: str, text: Any = "", ts: int = 0, **more: Any) -> dict[str, Any]:
    return {"type": "say", "say": kind, "text": text, "ts": ts, **more}


def ask(kind: str, text: Any = "", ts: int = 0) -> dict[str, Any]:
    return {"type": "ask", "ask": kind, "text": text, "ts": ts}


def run(*lines: dict[str, Any], code: int = 0) -> tuple[list[TranscriptEvent], dict[str, Any]]:
    out = "".join(json.dumps(line) + "\n" for line in lines)
    found = [event for batch, _ in replay(out.encode(), b"", "cline", code, None, None) for event in batch]
    assert isinstance(found[-1], Meta)
    return found[:-1], found[-1].meta


def test_a_whole_run() -> None:
    request = {"request": "…", "tokensIn": 400, "tokensOut": 57, "cacheReads": 800, "cacheWrites": 0, "cost": 0.5}
    found, judged = run(
        STARTED,
        say("task", f"Do it, then say {MARKER}", 1),
        say("api_req_started", json.dumps({"request": "…"}), 2),
        say("reasoning", "Let me look.", 3),
        say("text", "I'll list", 4, partial=True),
        say("text", "I'll list the", 4, partial=True),
        say("text", "I'll list the files.", 4, partial=False),
        say("api_req_started", json.dumps(request), 2),
        say("api_req_started", json.dumps(request), 2),
        say("command", "ls", 5),
        say("command_output", "README.md", 6),
        say("tool", json.dumps({"tool": "newFileCreated", "path": "a"}), 7),
        say("completion_result", f"Done.\n{MARKER}", 8),
        ask("completion_result", "", 9),
    )
    assert texts(found) == ["I'll list the files.", f"Done.\n{MARKER}"]
    assert texts(found, Tag.THINK) == ["Let me look."]
    assert [e.tool.name for e in found if isinstance(e, ToolStart)] == ["command", "newFileCreated"]
    assert [e.text for e in found if isinstance(e, ToolOutput)] == ["README.md"]
    assert [e.tool.status for e in found if isinstance(e, ToolEnd)] == [ToolStatus.UNKNOWN] * 2
    assert (judged["outcome"], judged["completed"], judged["session_id"]) == ("ok", True, "1770")
    assert (judged["usage"]["prompt_tokens"], judged["usage"]["completion_tokens"]) == (1200, 57)
    assert judged["usage"]["cost_usd"] == 0.5
    assert len([e for e in found if isinstance(e, Meta) and e.meta["kind"] == "result"]) == 1


@pytest.mark.parametrize(
    ("last", "outcome"),
    [
        (ask("followup", "Which file?", 2), "question"),
        (ask("command", "rm -rf build", 2), "permission_denied"),
        (ask("api_req_failed", "401 Unauthorized", 2), "auth"),
        (say("text", MARKER, 2), "failed"),
        (say("text", MARKER, 2, partial=True), "failed"),
        (say("something_new", "x", 2), "failed"),
    ],
)
def test_the_outcome_of_a_run_that_stops_early(last: dict[str, Any], outcome: str) -> None:
    _, judged = run(STARTED, say("text", "Hm.", 1), last)
    assert (judged["outcome"], judged["completed"]) == (outcome, False)


def test_an_unfinished_partial_message_is_shown() -> None:
    found, _ = run(say("text", "I'll l", 1, partial=True), say("text", "Now", 2, partial=True))
    assert texts(found) == ["I'll l", "Now"]


def test_a_field_of_an_unexpected_type_costs_only_that_field() -> None:
    found, judged = run(
        {"type": "say", "ts": []},
        say("text", 5),
        say("tool", "no json"),
        ask("x"),
        {"type": "task_started", "taskId": 1},
    )
    assert texts(found) == []
    assert judged["tools"]["started"] == 1


def next_request(*results: tuple[str, str], ts: int = 9) -> dict[str, Any]:
    """The request that follows commands, as 2.18 writes it."""
    request = "\n\n".join(f"[execute_command for '{command}'] Result:\n{words}" for command, words in results)
    return say("api_req_started", json.dumps({"request": request}), ts)


def test_the_status_of_commands_comes_from_the_next_request() -> None:
    good, bad = (
        "Command executed successfully (exit code 0).\nOutput:\na",
        "Command failed with exit code 3.\nOutput:\nb",
    )
    found, judged = run(
        STARTED,
        say("command", "ls", 1),
        ask("command_output", "a", 2),
        say("command", "make test", 3),
        ask("command_output", "b", 4),
        say("command", "sleep 1", 5),
        next_request(("ls", good), ("make test", bad)),
        say("completion_result", "Done.", 10),
    )
    assert [(e.tool.id, e.text) for e in found if isinstance(e, ToolOutput)] == [("call-1", "a"), ("call-2", "b")]
    assert judged["tools"] == {"started": 3, "ok": 1, "fail": 1, "unknown": 1}


def test_a_retry_gives_its_cause_which_is_the_outcome_if_nothing_follows() -> None:
    cause = json.dumps({"message": "429 Rate limit reached.", "status": 429, "code": "rate_limit_exceeded"})
    retry = {"attempt": 1, "maxAttempts": 3, "delaySeconds": 2, "errorMessage": cause}
    lines = (STARTED, say("error_retry", json.dumps(retry), 1), say("api_req_retried", "", 2))
    found, judged = run(*lines)
    (again,) = [e.meta for e in found if isinstance(e, Meta) and e.meta["kind"] == "retry"]
    assert (again["message"], again["class"], again["attempt"], again["delay_ms"]) == (
        "429 Rate limit reached.",
        "rate_limited",
        1,
        2000,
    )
    assert judged["outcome"] == "rate_limited"
    assert run(*lines, say("completion_result", MARKER, 3))[1]["completed"]


def test_an_interrupted_task_does_not_ask_a_question() -> None:
    _, judged = run(STARTED, say("text", "Working.", 1), ask("resume_task", "", 2))
    assert (judged["outcome"], judged["why"]) == ("failed", "the task was broken off")


def test_many_open_calls_do_not_fill_the_memory() -> None:
    found, judged = run(STARTED, *(say("command", "ls", ts) for ts in range(recent.KEPT + 1)))
    assert judged["tools"]["started"] == recent.KEPT + 1
    assert len([e for e in found if isinstance(e, ToolEnd)]) <= recent.KEPT
