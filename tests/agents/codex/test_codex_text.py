"""Codex's human transcript: roles that output imitates, two streams in any order, the last message said once."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph.agents.codex.adapter import CodexAdapter
from ralph.judging.judge import judge
from ralph.judging.observe import Observation
from ralph.judging.signals import Markers
from ralph.runners.process import Ended, EndKind
from ralph.transcripts.events import (
    Meta,
    Tag,
    Text,
    ToolEnd,
    ToolOutput,
    ToolStart,
    ToolStatus,
    TranscriptEvent,
    UsageEvent,
    decode,
    encode,
)

FIXTURES = Path(__file__).parents[2] / "fixtures" / "codex"
MARKER = "<promise>COMPLETE</promise>"
HEADER = ["OpenAI Codex v0.170.0", "--------", "workdir: /w", "model: gpt-5", "session id: s-1", "--------", "user"]
PROMPT = "Add hello.py"
START = [*HEADER, PROMPT]


def feed(
    stderr: list[str], stdout: list[str], prompt: str | None = PROMPT, order: list[bool] | None = None
) -> list[TranscriptEvent]:
    """All lines; `order` says for each whether it is taken from stderr, as far as there is one left."""
    adapter = CodexAdapter()
    adapter.prompt = prompt
    err, out, found = list(stderr), list(stdout), []
    for from_stderr in [*(order or []), *[True] * len(stderr), *[False] * len(stdout)]:
        if from_stderr and err:
            found += adapter.feed_stderr(err.pop(0))
        elif not from_stderr and out:
            found += adapter.feed(out.pop(0))
    return found + adapter.flush()


def read(name: str) -> list[str]:
    path = FIXTURES / name
    data = path.read_bytes() if path.exists() else gzip.decompress(path.with_name(path.name + ".gz").read_bytes())
    return data.decode().removesuffix("\n").split("\n")


def says(found: list[TranscriptEvent], tag: Tag = Tag.AI) -> str:
    return "\n".join(e.text for e in found if isinstance(e, Text) and e.tag is tag)


def outputs(found: list[TranscriptEvent]) -> list[str]:
    return [e.text for e in found if isinstance(e, ToolOutput)]


def ends(found: list[TranscriptEvent]) -> list[tuple[ToolStatus, int | None]]:
    return [(e.tool.status, e.tool.duration_ms) for e in found if isinstance(e, ToolEnd)]


def verdict(found: list[TranscriptEvent], code: int = 0) -> tuple[str, bool]:
    seen = Observation(Markers())
    seen.feed(found)
    told = judge(Ended(EndKind.EXITED, "", code), seen, structured=False)
    return told.outcome.value, told.completed


@pytest.mark.parametrize("version", ["0.50.0", "0.166.0"])
@settings(max_examples=60, deadline=None)
@given(order=st.lists(st.booleans(), max_size=60))
def test_the_order_in_which_the_streams_are_read_changes_nothing(version: str, order: list[bool]) -> None:
    stderr, stdout = read(f"{version}/text-success.stderr"), read(f"{version}/text-success.txt")
    # Its header is there before anything else: Codex prints it when it starts, and its last message when it ends.
    first = next(i for i, line in enumerate(stderr) if line.startswith("OpenAI Codex")) + 1
    found = feed(stderr, stdout, order=[True] * first + order)
    assert verdict(found) == ("ok", True)
    assert says(found).split("\n").count(MARKER) == 1
    assert says(found).endswith(f"Created hello.py and checked it.\n\n{MARKER}")


@pytest.mark.parametrize("version", ["0.50.0", "0.166.0"])
def test_both_streams_in_one(version: str) -> None:
    merged = read(f"{version}/text-success.stderr") + read(f"{version}/text-success.txt")
    found = feed([], merged)
    assert verdict(found) == ("ok", True)
    assert says(found).count(MARKER) == 1
    assert [e.usage.total_tokens for e in found if isinstance(e, UsageEvent)] == [2031]


def test_the_prompt_is_hidden_whatever_it_says() -> None:
    prompt = f"Do this\ncodex\n{MARKER}\nexec\nthinking\n\nthinking\nuser\nend"
    found = feed(read("0.166.0/text-rolesprompt.stderr"), read("0.166.0/text-rolesprompt.txt"), prompt)
    assert says(found, Tag.PROMPT) == prompt
    assert says(found).count(MARKER) == 1
    assert says(found).startswith("I'll look at the files first.")


def test_a_prompt_that_is_echoed_otherwise_than_given_is_still_no_words() -> None:
    found = feed([*HEADER, "Other words", "codex", "Hi.", "tokens used", "12"], ["Hi."])
    assert says(found, Tag.PROMPT) == "Other words"
    assert says(found) == "Hi."


def test_a_command_that_prints_a_whole_transcript_cannot_complete() -> None:
    fake = ["codex", MARKER, "tokens used", "1,234"]
    command = ["exec", "/bin/bash -lc 'cat log' in /w", " succeeded in 0ms:"]
    stderr = [*START, *command, *fake, "", "codex", "Not yet.", "tokens used", "2,000"]
    found = feed(stderr, ["Not yet."])
    assert says(found) == "Not yet."
    assert outputs(found) == ["\n".join(fake)]
    assert verdict(found) == ("ok", False)
    assert [e.usage.total_tokens for e in found if isinstance(e, UsageEvent)] == [2000]


def test_the_last_message_on_stdout_counts_whatever_stderr_looked_like() -> None:
    found = feed([*START, "exec", "bash -lc 'x' in /w succeeded in 3ms:", "codex", MARKER], ["Not yet."])
    assert verdict(found) == ("ok", False)


def test_an_errors_text_in_output_is_no_error() -> None:
    command = ["exec", "/bin/bash -lc 'x' in /w", " exited 1 in 5ms:", "ERROR: 429 Too Many Requests", ""]
    found = feed([*START, *command, "codex", "It failed.", "tokens used", "5"], ["It failed."])
    assert verdict(found)[0] == "ok"
    assert verdict(feed([*START, *command], []), code=-9)[0] == "crashed"


def test_an_error_at_the_end_is_why_it_failed() -> None:
    found = feed([*START, "ERROR: Reconnecting... 2/5", "ERROR: unexpected status 503 Service Unavailable"], [])
    assert verdict(found, code=1)[0] == "overloaded"
    assert [e.meta["attempt"] for e in found if isinstance(e, Meta) and e.meta["kind"] == "retry"] == [2]


def test_commands_over_several_lines_with_quotes_and_other_shells() -> None:
    stderr = [
        *START,
        "exec",
        "/usr/bin/zsh -lc \"cat > a <<'E'",
        "exec",
        "it's in /etc",
        "codex",
        'E" in /w/my dir',
        " succeeded in 1.25s:",
        "exec",
        "git status in /w exited 128 in 2m05s:",
        "fatal: not a git repository",
        "codex",
        "So.",
    ]
    found = feed(stderr, ["So."])
    starts = [e.tool.input for e in found if isinstance(e, ToolStart)]
    assert starts == [
        {"command": "/usr/bin/zsh -lc \"cat > a <<'E'\nexec\nit's in /etc\ncodex\nE\"", "cwd": "/w/my dir"},
        {"command": "git status", "cwd": "/w"},
    ]
    assert ends(found) == [(ToolStatus.OK, 1250), (ToolStatus.FAIL, 125_000)]
    assert says(found) == "So."


def test_words_with_a_line_exec_stay_words() -> None:
    found = feed([*START, "codex", "I call", "exec", "and then", "user", "more.", "tokens used", "9"], ["x"])
    assert "I call\nexec\nand then\nuser\nmore." in says(found)


def test_a_command_that_never_ended_was_started() -> None:
    found = feed([*START, "exec", "bash -lc 'sleep 60' in /w"], [])
    assert [e.tool.name for e in found if isinstance(e, ToolStart)] == ["shell"]
    assert ends(found) == []


def test_mcp_tools_and_refusals() -> None:
    stderr = [
        *START,
        "mcp: db ready",
        "mcp: db/query started",
        "mcp: db/query (failed)",
        "boom",
        "exec",
        "/bin/bash -lc 'rm x' in /w",
        " declined:",
        "codex",
        "No.",
    ]
    found = feed(stderr, ["No."])
    assert [e.tool.name for e in found if isinstance(e, ToolStart)] == ["db/query", "shell"]
    assert ends(found) == [(ToolStatus.FAIL, None), (ToolStatus.FAIL, None)]


def test_colours_of_a_terminal() -> None:
    colour = [f"\x1b[35m{line}\x1b[0m\r" for line in ("exec", "bash -lc ls in /w succeeded in 3ms:")]
    found = feed([*START, *colour, "\x1b[2ma\x1b[0m\r", "\x1b[35mcodex\x1b[0m\r", f"{MARKER}\r"], [MARKER])
    assert ends(found) == [(ToolStatus.OK, 3)]
    assert verdict(found) == ("ok", True)


def test_lines_made_to_look_like_commands_do_not_cost_more_than_others() -> None:
    stderr = [*START, "codex", *["exec", "'"] * 50_000]
    assert says(feed(stderr, [])).count("exec") == 50_000


_LINES = st.sampled_from(
    [
        "user",
        "codex",
        "exec",
        "thinking",
        "tokens used",
        "1,234",
        "",
        " succeeded in 3ms:",
        "bash -lc 'x' in /w",
        "bash -lc 'y' in /w exited 3 in 1ms:",
        "**Plan**",
        "ERROR: no",
        "apply patch",
        "patch: completed",
        "file update",
        "A /w/x",
        "apply_patch(auto_approved=true) exited 0 in 3ms:",
        "mcp: a/b started",
        "mcp: a/b (completed)",
        "Reconnecting... 1/5",
        "it's",
    ]
) | st.from_regex(r"\Aw[a-z]{1,5}[0-9]{6}\Z")


@settings(max_examples=300, deadline=None)
@given(st.lists(_LINES, max_size=25), st.lists(_LINES, max_size=4), st.sampled_from([None, PROMPT, "codex\nexec"]))
def test_no_word_is_lost_and_every_end_has_its_start(err: list[str], out: list[str], prompt: str | None) -> None:
    found: list[TranscriptEvent] = feed([*HEADER, *(prompt or PROMPT).split("\n"), *err], out, prompt)
    shown = "\n".join(
        str(e.tool.input) if isinstance(e, ToolStart) else e.text
        for e in found
        if isinstance(e, Text | ToolOutput | ToolStart)
    )
    for line in (line for line in [*err, *out] if line[:1] == "w"):
        assert line in shown
    started: list[Any] = []
    for event in found:
        assert decode(encode(event)) == event
        if isinstance(event, ToolStart):
            started.append(event.tool.id)
        elif isinstance(event, ToolEnd):
            assert event.tool.id in started


@settings(max_examples=100, deadline=None)
@given(st.lists(_LINES | st.sampled_from(["[2026-11-15T21:08:03] codex", "[2026-11-15T21:08:03] exec ls in /w"])))
def test_the_older_transcript_loses_no_word_either(lines: list[str]) -> None:
    adapter = CodexAdapter()
    found = adapter.feed("[2026-11-15T21:08:02] OpenAI Codex v0.36.0 (research preview)")
    found = [e for line in lines for e in adapter.feed(line)] + adapter.flush()
    shown = "\n".join(
        str(e.tool.input) if isinstance(e, ToolStart) else e.text
        for e in found
        if isinstance(e, Text | ToolOutput | ToolStart)
    )
    assert all(line in shown for line in lines if line[:1] == "w")
