"""Kiro's human transcript, beyond the samples."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))


from fuzz.damage import words_line

from ralph.agents.kiro.adapter import KiroAdapter
from ralph.judging.replay import replay
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

MARKER = "<promise>COMPLETE</promise>"
CREDITS = "\x1b[38;5;244m ▸ Credits: 0.12 • Time: 14s\x1b[0m"


def events(*lines: str, stderr: tuple[str, ...] = ()) -> list[TranscriptEvent]:
    adapter = KiroAdapter()
    found = [e for line in stderr for e in adapter.feed_stderr(line)]
    return found + [e for line in lines for e in adapter.feed(line)] + adapter.flush()


def verdict(*lines: str, stderr: tuple[str, ...] = (), code: int = 0) -> dict[str, Any]:
    out, err = ("".join(f"{line}\n" for line in part).encode() for part in (lines, stderr))
    *_, (last, _) = replay(out, err, "kiro", code, None, None)
    assert isinstance(last[0], Meta)
    return last[0].meta


def says(found: list[TranscriptEvent]) -> list[str]:
    return [e.text for e in found if isinstance(e, Text) and e.tag is Tag.AI]


def test_the_prefix_is_the_clis_and_a_quotation_is_the_agents() -> None:
    assert says(events("> Hello", "", f"> {MARKER}")) == ["Hello", "", f"> {MARKER}"]
    assert verdict("> I was asked to print", f"> {MARKER}")["completed"] is False
    assert verdict("> Done.", MARKER)["completed"] is True


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("🛠️  Using tool: execute_bash (trusted)", " ● Completed in 0.31s"),
        ("I will run the following command: ls (using tool: shell)", " - Completed in 0.31s"),
    ],
)
def test_tools_have_lines_of_their_own(start: str, end: str) -> None:
    found = events("> I will look.", start, "README.md", MARKER, end, "", "> No.")
    assert says(found) == ["I will look.", "", "No."]
    assert [e.text for e in found if isinstance(e, ToolOutput)] == [f"README.md\n{MARKER}"]
    assert [(e.tool.status, e.tool.duration_ms) for e in found if isinstance(e, ToolEnd)] == [(ToolStatus.OK, 310)]
    assert len([e for e in found if isinstance(e, ToolStart)]) == 1


def test_a_failed_tool_and_one_that_says_nothing_of_its_end() -> None:
    found = events("🛠️  Using tool: fs_write", " ● Execution failed after 0.0s:", "🛠️  Using tool: fs_read", "x", "> So.")
    assert [e.tool.status for e in found if isinstance(e, ToolEnd)] == [ToolStatus.FAIL, ToolStatus.UNKNOWN]
    assert says(found) == ["So."]


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        ("error: authentication failed", "auth"),
        ("error: You are not logged in, please log in with kiro-cli login", "auth"),
        ("error: Tool approval required but --no-interactive was specified.", "permission_denied"),
        ("error: Too many requests, please try again in 30 seconds", "rate_limited"),
        ("error: Monthly limit reached", "quota"),
        ("error: the service is down", "failed"),
    ],
)
def test_errors_stand_on_stderr_even_with_exit_0(line: str, outcome: str) -> None:
    assert verdict(stderr=(line,))["outcome"] == outcome


def test_credits_at_the_end_prove_that_an_error_was_got_over() -> None:
    assert verdict("> Done.", stderr=("error: one tool server did not start", CREDITS))["outcome"] == "ok"


def test_a_spinner_is_not_said() -> None:
    spun = "\r⠋ Thinking...\r⠙ Thinking...\x1b[38;5;141m> \x1b[0mHello"
    assert says(events(spun)) == ["Hello"]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.text(max_size=30).filter(lambda t: "\n" not in t) | st.sampled_from(["> x", " ● Completed in 1s"])))
def test_never_raises_and_what_comes_out_is_rtf1(lines: list[str]) -> None:
    assert all(decode(encode(event)) for event in events(*lines, stderr=tuple(lines)))


@settings(max_examples=150, deadline=None)
@given(st.lists(words_line().filter(lambda t: "ool: " not in t and t[:2] != "> " and t[-1] != "\r"), min_size=1))
def test_no_line_is_lost(lines: list[str]) -> None:
    assert says(events(*lines)) == lines
