"""Whole turns of Codex's text at once: the same events as line by line, and memory that does not grow with output."""

from __future__ import annotations

import random
import tracemalloc
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph.agents.codex import held as codex_held
from ralph.agents.codex.adapter import CodexAdapter
from ralph.transcripts.events import Tag, Text, ToolEnd, ToolOutput, encode
from ralph.transcripts.safe import SafeAdapter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ralph.transcripts.events import TranscriptEvent

HEADER = ["OpenAI Codex v0.170.0", "--------", "model: gpt-5", "--------", "user", "Do it", "codex", "Well."]
#: Lines of output, thoughts and words; some of them mean something elsewhere, or look as if they did.
LINES = [
    *(
        "word",
        "two words",
        "step 1",
        "- item",
        "# head",
        "café 漢字",
        "🎉",
        "it's",
        'say "hi',
        "  indented:",
        "",
        "",
        " ",
    ),
    *("exec", "codex", "user", "thinking", "tokens used", "1,234", "**Title**", "**bold** text", "2026-01-01", "Re: x"),
    *("\x1b[32mgreen\x1b[0m", "end\r", "\x1b[1mcodex\x1b[0m", "\x1b[2m\x1b[0m", "**A**\r", "exec\r", " declined:\r"),
    *("mcp: a/b started", "mcp: hi", "ERROR: no", "warning: y", "apply_patch(x)", "apply patch", "file update", "A /x"),
]
COMMANDS = [
    *(
        "ls in /w",
        "/bin/bash -lc ls in /w/x",
        "bash -lc 'ls -la && cat x' in /w",
        "grep in in /w",
        "x in ~/w",
        "C in C:\\w",
    ),
    *("bash -lc \"cat > h <<'E'\nhello\nE\" in /w", "bash -lc 'a\nexec\nb in /x\nc' in /w", "bash -lc 'a\n\nb' in /w"),
    *("bash -lc 'it'\"'\"'s' in /w", 'bash -lc "printf \\"x\\" \\\\n" in /w', "git commit -m 'x' in /w/my dir", "no"),
    *(
        "bash -lc 'a' in /x' in /w",
        "bash -lc 'x in /y' succeeded in 3ms: in /w",
        "bash -lc 'open in /w",
        "bash -lc 'x'y in /w",
    ),
    *(
        "bash -lc 'a:\n b succeeded in 3ms:\nc' in /w",
        "bash -lc \x1b[1m'a' in /w",
        "bash -lc 'a' in /w/ü",
        "exec in /w",
    ),
]
ENDS = [
    *("succeeded in 3ms:", "succeeded in 3ms:", "succeeded in 3ms:", "exited 3 in 17ms:", "exited 0 in 1ms:"),
    *("exited -1 in 2ms:", "exited 1 in 2.5s:", "declined:", "in progress:", "succeeded in 1m 2s:", "succeeded:"),
]


def some(rng: random.Random, most: int) -> list[str]:
    return [rng.choice(LINES) if rng.random() < 0.4 else f"w{rng.randrange(99)}" for _ in range(rng.randrange(most))]


def maybe(rng: random.Random, lines: list[str]) -> list[str]:
    return lines if rng.random() < 0.7 else []


def piece(rng: random.Random) -> list[str]:
    """A turn of some version, a change of files, commands at the same time, or an end that is none."""
    command, ended = rng.choice(COMMANDS).split("\n"), rng.choice(ENDS)
    output = some(rng, rng.choice((2, 5, 25, 70)))
    words = maybe(rng, ["codex", "Says.", *some(rng, 4)])
    match rng.randrange(8):
        case 0 | 1:
            thoughts = maybe(rng, ["**Plan**", "", "thought"])
            return ["exec", *command, f" {ended}", *output, *maybe(rng, [""]), *thoughts, *words]
        case 2 | 3:
            thoughts = maybe(rng, ["thinking", "**Plan**", "", "thought", *some(rng, 2)])
            return ["exec", *command[:-1], f"{command[-1]} {ended}", *output, *maybe(rng, [""]), *thoughts, *words]
        case 4:
            other = rng.choice(COMMANDS).split("\n")
            return ["exec", *command, "exec", *other, f" {ended}", *output, f" {rng.choice(ENDS)}", *some(rng, 4)]
        case 5:
            end = f"apply_patch(auto=true) exited {rng.randrange(2)} in 5ms:"
            return ["file update", "A /w/x", *some(rng, 4), end, "Success.", *some(rng, 3)]
        case 6:
            return ["apply patch", "patch: completed", "/w/x", *some(rng, 3)]
        case _:
            again = ["--------", "user", "Do it", *some(rng, 3), "", "thinking", "hm", "codex", "Hi"]
            return ["codex", "Done.", "tokens used", "1,254", *again]


def transcript(rng: random.Random) -> list[str]:
    lines = [*HEADER, *(line for _ in range(rng.randrange(1, 14)) for line in piece(rng))]
    for _ in range(rng.choice((0, 0, 1, 5))):
        at = rng.randrange(len(lines))
        old = lines[at]
        lines[at] = rng.choice((f"{old}\r", f"\x1b[1m{old}\x1b[0m", old[:-1], f"{old} ", f"{old}:", f" {old}"))
    return lines


def many(chunks: Iterable[list[str]]) -> list[TranscriptEvent]:
    adapter = SafeAdapter(CodexAdapter())
    events = [event for chunk in chunks for event in adapter.feed_stderr_lines(chunk)]
    return events + adapter.flush()


def one_by_one(lines: list[str]) -> list[TranscriptEvent]:
    adapter = CodexAdapter()
    events = [event for line in lines for event in adapter.feed_stderr(line)]
    return events + adapter.flush()


@pytest.mark.parametrize("most", [codex_held.MOST_HELD, 60, 6000])
@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_turns_give_what_their_lines_give(most: int, seed: int) -> None:
    rng = random.Random(seed)
    lines = transcript(rng)
    sizes = rng.choice(((500,), (1, 2, 3, 7, 30, 500), (7, 30), (100,)))
    chunks, rest = [], lines
    while rest:
        size = rng.choice(sizes)
        chunks.append(rest[:size])
        rest = rest[size:]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codex_held, "MOST_HELD", most)
        assert [encode(event) for event in many(chunks)] == [encode(event) for event in one_by_one(lines)]


@pytest.mark.parametrize("command", [["ls in /w", " succeeded in 3ms:"], ["ls in /w succeeded in 3ms:"]])
def test_a_tool_that_prints_fifty_megabytes_does_not_fill_the_memory(command: list[str]) -> None:
    adapter = SafeAdapter(CodexAdapter())
    adapter.feed_stderr_lines([*HEADER, "exec", *command])
    chunk = [f"{number:06d} of many lines that a tool prints" for number in range(1600)]
    size = sum(len(line) + 1 for line in chunk)
    got = outputs = 0
    tracemalloc.start()
    try:
        for _ in range((50 << 20) // size + 1):
            for event in adapter.feed_stderr_lines(chunk):
                assert isinstance(event, ToolOutput)
                assert event.text.split("\n")[0] == chunk[outputs % len(chunk)]
                outputs += event.text.count("\n") + 1
                got += len(event.text) + 1
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 << 20
    assert got > 45 << 20
    # It is still the end of it that is divided.
    rest = adapter.feed_stderr_lines(["", "codex", "Read it.", "exec", *command])
    assert isinstance(rest[0], ToolOutput)
    assert (outputs + rest[0].text.count("\n") + 1 - ("codex" in rest[0].text) * 3) % len(chunk) == 0
    assert [type(event) for event in rest[1:2]] == [ToolEnd]
    if len(command) == 2:
        assert Text(Tag.AI, "Read it.") in rest


def test_words_that_end_a_turn_are_remembered_as_the_last_message() -> None:
    turn = [
        "exec",
        "ls in /w",
        " succeeded in 3ms:",
        "x",
        "",
        "codex",
        "One.",
        "exec",
        "ls in /w",
        " succeeded in 3ms:",
    ]
    adapter = SafeAdapter(CodexAdapter())
    adapter.feed_stderr_lines([*HEADER, *turn, "y", "", "codex", "Two.", "", "Three.", "tokens used", "12"])
    adapter.feed_lines(["Two.", "", "Three."])
    assert [event.text for event in adapter.flush() if isinstance(event, Text)] == ["Two.\n\nThree."]
