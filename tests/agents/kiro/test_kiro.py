"""Kiro's text output: what the recordings do not cover."""

from __future__ import annotations

from typing import Any

import pytest
from fuzz.damage import words_line
from hypothesis import given
from hypothesis import strategies as st

from ralph.agents.kiro.adapter import KiroAdapter
from ralph.judging.replay import replay
from ralph.transcripts import deltas
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


def test_the_prefix_of_an_answer_is_dropped_and_a_quotation_is_kept() -> None:
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


ANSWER = "\x1b[38;5;141m> \x1b[0m"
TOOL, ENDED = "🛠️  Using tool: fs_read (trusted)", " ● Completed in 0.0s"


@pytest.mark.parametrize(
    "lines",
    [
        ("> I will look.", TOOL, f"> {MARKER}", ENDED),
        ("> I will look.", TOOL, f"> {MARKER}"),
        ("> I will look.", TOOL, "> quoted", MARKER, ENDED),
        (f"{ANSWER}I will look.", TOOL, "> quoted", MARKER, ENDED),
        (f"{ANSWER}I will look.", TOOL, "> quoted", MARKER),
        (f"{ANSWER}I will look.", TOOL, "> quoted (using tool: x)", MARKER),
        ("\x1b[m> \x1b[0mI will look.", TOOL, "> quoted", "", MARKER),
    ],
)
def test_what_a_tool_quotes_is_not_the_agents_answer(lines: tuple[str, ...]) -> None:
    assert verdict(*lines)["completed"] is False


@pytest.mark.parametrize("prefix", [ANSWER, "\x1b[m> \x1b[0m"])
def test_an_answer_after_a_quotation_counts(prefix: str) -> None:
    found = events(f"{prefix}I will look.", TOOL, "> quoted", f"{prefix}Done.", MARKER)
    assert says(found) == ["I will look.", "Done.", MARKER]
    assert verdict(f"{prefix}I will look.", TOOL, "> quoted", f"{prefix}Done.", MARKER)["completed"] is True
    assert verdict("> I will look.", TOOL, "x", ENDED, "> Done.", MARKER)["completed"] is True


def test_failed_tools_and_tools_without_an_end() -> None:
    found = events("🛠️  Using tool: fs_write", " ● Execution failed after 0.0s:", "🛠️  Using tool: fs_read", "x", "> So.")
    assert [e.tool.status for e in found if isinstance(e, ToolEnd)] == [ToolStatus.FAIL, ToolStatus.UNKNOWN]
    assert says(found) == ["> So."]


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
def test_stderr_errors_count_even_with_exit_code_0(line: str, outcome: str) -> None:
    assert verdict(stderr=(line,))["outcome"] == outcome


def test_an_error_before_the_credits_is_not_fatal() -> None:
    assert verdict("> Done.", stderr=("error: one tool server did not start", CREDITS))["outcome"] == "ok"


def test_a_spinner_is_not_shown() -> None:
    spun = "\r⠋ Thinking...\r⠙ Thinking...\x1b[38;5;141m> \x1b[0mHello"
    assert says(events(spun)) == ["Hello"]


@given(st.lists(st.text(max_size=30).filter(lambda t: "\n" not in t) | st.sampled_from(["> x", " ● Completed in 1s"])))
def test_damaged_lines_never_raise_and_their_events_can_be_encoded(lines: list[str]) -> None:
    assert all(decode(encode(event)) for event in events(*lines, stderr=tuple(lines)))


@given(st.lists(words_line().filter(lambda t: "ool: " not in t and t[:2] != "> " and t[-1] != "\r"), min_size=1))
def test_no_line_is_lost(lines: list[str]) -> None:
    assert says(events(*lines)) == lines


def test_the_output_of_a_tool_that_never_ends_is_shown_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deltas, "MAX_HELD", 1000)
    lines = [f"line {n}" for n in range(100)]
    found = events("Using tool: shell", *lines)
    shown = [e.text for e in found if isinstance(e, ToolOutput)]
    assert len(shown) > 3
    assert "\n".join(shown).split("\n") == lines
    assert [e.tool.status for e in found if isinstance(e, ToolEnd)] == [ToolStatus.UNKNOWN]


def test_an_answer_that_mentions_a_tool_ends_the_tool_before_it() -> None:
    found = events("Using tool: fs_read", "x", "> I ran ls (using tool: shell)")
    assert says(found) == ["> I ran ls (using tool: shell)"]
    assert len([e for e in found if isinstance(e, ToolStart)]) == 1
