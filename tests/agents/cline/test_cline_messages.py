"""Cline before release 3: its chat as JSON, as its schema tells."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ralph.judging.replay import replay
from ralph.transcripts.events import Meta, Tag, Text, ToolEnd, ToolOutput, ToolStart, ToolStatus, TranscriptEvent

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


def says(found: list[TranscriptEvent], tag: Tag = Tag.AI) -> list[str]:
    return [e.text for e in found if isinstance(e, Text) and e.tag is tag]


def test_a_run_from_its_task_to_its_completion() -> None:
    request = {"request": "…", "tokensIn": 400, "tokensOut": 57, "cacheReads": 800, "cacheWrites": 0, "cost": 0.5}
    found, told = run(
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
    assert says(found) == ["I'll list the files.", f"Done.\n{MARKER}"]
    assert says(found, Tag.THINK) == ["Let me look."]
    assert [e.tool.name for e in found if isinstance(e, ToolStart)] == ["command", "newFileCreated"]
    assert [e.text for e in found if isinstance(e, ToolOutput)] == ["README.md"]
    assert [e.tool.status for e in found if isinstance(e, ToolEnd)] == [ToolStatus.UNKNOWN] * 2
    assert (told["outcome"], told["completed"], told["session_id"]) == ("ok", True, "1770")
    assert (told["usage"]["prompt_tokens"], told["usage"]["completion_tokens"]) == (1200, 57)
    assert told["usage"]["cost_usd"] == 0.5
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
def test_how_a_run_may_stop_short(last: dict[str, Any], outcome: str) -> None:
    _, told = run(STARTED, say("text", "Hm.", 1), last)
    assert (told["outcome"], told["completed"]) == (outcome, False)


def test_a_message_that_was_cut_while_it_grew_is_shown() -> None:
    found, _ = run(say("text", "I'll l", 1, partial=True), say("text", "Now", 2, partial=True))
    assert says(found) == ["I'll l", "Now"]


def test_strange_fields_do_no_harm() -> None:
    found, told = run(
        {"type": "say", "ts": []},
        say("text", 5),
        say("tool", "no json"),
        ask("x"),
        {"type": "task_started", "taskId": 1},
    )
    assert says(found) == []
    assert told["tools"]["started"] == 1


def told_next(*results: tuple[str, str], ts: int = 9) -> dict[str, Any]:
    """The request that follows commands, as 2.18 writes it."""
    request = "\n\n".join(f"[execute_command for '{command}'] Result:\n{words}" for command, words in results)
    return say("api_req_started", json.dumps({"request": request}), ts)


def test_how_commands_ended_is_read_from_what_the_model_is_told() -> None:
    good, bad = (
        "Command executed successfully (exit code 0).\nOutput:\na",
        "Command failed with exit code 3.\nOutput:\nb",
    )
    found, told = run(
        STARTED,
        say("command", "ls", 1),
        ask("command_output", "a", 2),
        say("command", "make test", 3),
        ask("command_output", "b", 4),
        say("command", "sleep 1", 5),
        told_next(("ls", good), ("make test", bad)),
        say("completion_result", "Done.", 10),
    )
    assert [(e.tool.id, e.text) for e in found if isinstance(e, ToolOutput)] == [("call-1", "a"), ("call-2", "b")]
    assert told["tools"] == {"started": 3, "ok": 1, "fail": 1, "unknown": 1}


def test_its_retries_are_told_with_their_cause_and_count_if_nothing_follows() -> None:
    cause = json.dumps({"message": "429 Rate limit reached.", "status": 429, "code": "rate_limit_exceeded"})
    retry = {"attempt": 1, "maxAttempts": 3, "delaySeconds": 2, "errorMessage": cause}
    lines = (STARTED, say("error_retry", json.dumps(retry), 1), say("api_req_retried", "", 2))
    found, told = run(*lines)
    (again,) = [e.meta for e in found if isinstance(e, Meta) and e.meta["kind"] == "retry"]
    assert (again["message"], again["class"], again["attempt"], again["delay_ms"]) == (
        "429 Rate limit reached.",
        "rate_limited",
        1,
        2000,
    )
    assert told["outcome"] == "rate_limited"
    assert run(*lines, say("completion_result", MARKER, 3))[1]["completed"]


def test_a_task_that_was_broken_off_asks_no_question() -> None:
    _, told = run(STARTED, say("text", "Working.", 1), ask("resume_task", "", 2))
    assert (told["outcome"], told["why"]) == ("failed", "the task was broken off")
