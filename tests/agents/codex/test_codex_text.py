"""Codex's human-readable transcripts: imitated roles, two streams in any order, bounded memory."""

from __future__ import annotations

import gzip
import random
import re
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.agents.codex import held
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
    """Feeds all lines. `order` says for each one whether it comes from stderr, as long as there is one left."""
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
    verdict = judge(Ended(EndKind.EXITED, "", code), seen, structured=False)
    return verdict.outcome.value, verdict.completed


@pytest.mark.parametrize("version", ["0.50.0", "0.166.0"])
@given(order=st.lists(st.booleans(), max_size=60))
def test_the_order_in_which_the_streams_are_read_changes_nothing(version: str, order: list[bool]) -> None:
    stderr, stdout = read(f"{version}/text-success.stderr"), read(f"{version}/text-success.txt")
    # Codex prints its header when it starts and its last message when it ends, so the header always comes first.
    first = next(i for i, line in enumerate(stderr) if line.startswith("OpenAI Codex")) + 1
    found = feed(stderr, stdout, order=[True] * first + order)
    assert verdict(found) == ("ok", True)
    assert says(found).split("\n").count(MARKER) == 1
    assert says(found).endswith(f"Created hello.py and checked it.\n\n{MARKER}")


@pytest.mark.parametrize("version", ["0.50.0", "0.166.0"])
def test_both_streams_merged_into_one(version: str) -> None:
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


def test_a_prompt_that_is_echoed_differently_is_still_not_the_agents_words() -> None:
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


def test_an_error_message_in_output_is_no_error() -> None:
    command = ["exec", "/bin/bash -lc 'x' in /w", " exited 1 in 5ms:", "ERROR: 429 Too Many Requests", ""]
    found = feed([*START, *command, "codex", "It failed.", "tokens used", "5"], ["It failed."])
    assert verdict(found)[0] == "ok"
    assert verdict(feed([*START, *command], []), code=-9)[0] == "crashed"


def test_an_error_at_the_end_is_the_reason_of_the_failure() -> None:
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


def test_a_line_exec_does_not_swallow_the_commands_after_it() -> None:
    """The line after it opens a quote that a later line closes."""
    stderr = [*START, "codex", "I call", "exec", "it's", "that's it", "exec", "ls in /w", " succeeded in 3ms:", "a"]
    found = feed(stderr, [])
    assert says(found) == "I call\nexec\nit's\nthat's it"
    assert [e.tool.input for e in found if isinstance(e, ToolStart)] == [{"command": "ls", "cwd": "/w"}]


def test_lines_that_may_be_a_command_are_not_lost_at_the_end() -> None:
    found = feed([*START, "codex", "I call", "exec", "it's", "exec", 'say "hi', "w1"], [])
    assert says(found) == "I call\nexec\nit's\nexec\nsay \"hi\nw1"


def test_the_last_message_is_known_although_it_was_held() -> None:
    command = ["exec", "ls in /w", " succeeded in 3ms:"]
    turns = [*command, "x", "", "codex", "One.", *command, "y", "", "codex", "Two.", "", "Three."]
    found = feed([*START, *turns, "tokens used", "12"], ["Two.", "", "Three."])
    assert says(found) == "One.\nTwo.\n\nThree."


def test_a_last_message_that_differs_from_the_transcript_is_shown() -> None:
    assert says(feed([*START, "codex", "One."], ["Zero.", "One."])) == "One.\nZero."
    stamped = "[2026-11-15T21:08:02] OpenAI Codex v0.36.0 (research preview)"
    assert says(feed([stamped], ["Only here."])) == "Only here."


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


@pytest.mark.endurance
def test_lines_that_imitate_commands_do_not_take_longer_than_others() -> None:
    stderr = [*START, "codex", *["exec", "'"] * 50_000]
    assert says(feed(stderr, [])).count("exec") == 50_000


def test_a_command_with_very_many_lines_is_read_once() -> None:
    lines = [f"line {number} in /w, it is not the end:" for number in range(10_000)]
    stderr = [*START, "exec", "bash -lc 'cat <<E", *lines, "E' in /w", " exited 1 in 2m05s:", "x"]
    found = feed(stderr, [])
    (start,) = (e.tool for e in found if isinstance(e, ToolStart))
    assert start.input == {"command": "\n".join(["bash -lc 'cat <<E", *lines, "E'"]), "cwd": "/w"}
    assert ends(found) == [(ToolStatus.FAIL, 125_000)]


def test_a_very_long_status_line_is_read_once() -> None:
    long = " succeeded in 1" * 200_000 + ":"
    found = feed([*START, "exec", "ls in /w", long, " succeeded in 3ms:", "x"], [])
    assert ends(found) == [(ToolStatus.OK, 3)]


_STAMPED = "[2026-11-15T21:08:02] "


@pytest.mark.endurance
@pytest.mark.parametrize(
    ("start", "end", "spoken"),
    [
        ([*START, "exec", "ls in /w", " succeeded in 3ms:"], ["", "codex", "Read it."], True),
        # This version prints 20 lines at most, so everything after so many is output.
        ([*START, "exec", "ls in /w succeeded in 3ms:"], ["", "codex", "Read it."], False),
        (
            [f"{_STAMPED}OpenAI Codex v0.36.0", f"{_STAMPED}exec ls in /w", f"{_STAMPED}ls succeeded in 3ms:"],
            [f"{_STAMPED}codex", "Read it."],
            True,
        ),
    ],
)
@pytest.mark.parametrize(("count", "width", "most_held"), [(50_000, 1000, held.MOST_HELD), (100_000, 0, 1 << 20)])
def test_very_much_output_does_not_fill_the_memory(
    start: list[str],
    end: list[str],
    spoken: bool,
    count: int,
    width: int,
    most_held: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """50 MB of long lines, and short ones that take more memory than may be held as Python objects."""
    monkeypatch.setattr(held, "MOST_HELD", most_held)
    adapter = CodexAdapter()
    for line in start:
        adapter.feed_stderr(line)
    seen = 0
    tracemalloc.start()
    try:
        for number in range(count):
            for event in adapter.feed_stderr(f"{number:06d}{'x' * width}"):
                assert isinstance(event, ToolOutput)
                numbers = [int(text[:6]) for text in event.text.split("\n")]
                assert numbers == list(range(seen, seen + len(numbers)))
                seen += len(numbers)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4.5 * most_held
    rest = [event for line in end for event in adapter.feed_stderr(line)] + adapter.flush()
    assert [text[:6] for text in outputs(rest)[0].split("\n")][: count - seen] == [
        f"{n:06d}" for n in range(seen, count)
    ]
    assert ends(rest) == [(ToolStatus.OK, 3)]
    assert (says(rest) == "Read it.") is spoken


_IMITATIONS = [
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
_LINES = st.sampled_from(_IMITATIONS) | st.from_regex(r"\Aw[a-z]{1,5}[0-9]{6}\Z")


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


@pytest.mark.parametrize("most", [300, 3000])
@pytest.mark.parametrize("seed", range(20))
def test_long_output_is_handed_on_in_order_and_in_parts(most: int, seed: int) -> None:
    """No matter what it imitates, every line comes out once, in its order."""
    rng = random.Random(seed)
    output = [rng.choice([*_IMITATIONS, *[f"word{number}"] * 20]) for number in range(300)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held, "MOST_HELD", most)
        found = feed([*START, "exec", "ls in /w", " succeeded in 3ms:", *output], [])
    shown = "\n".join(
        str(e.tool.input) if isinstance(e, ToolStart) else e.text
        for e in found
        if isinstance(e, Text | ToolOutput | ToolStart)
    )
    assert re.findall(r"word\d+", shown) == [line for line in output if line.startswith("word")]


@given(st.lists(_LINES | st.sampled_from(["[2026-11-15T21:08:03] codex", "[2026-11-15T21:08:03] exec ls in /w"])))
def test_the_older_transcript_loses_no_word(lines: list[str]) -> None:
    adapter = CodexAdapter()
    found = adapter.feed("[2026-11-15T21:08:02] OpenAI Codex v0.36.0 (research preview)")
    found = [e for line in lines for e in adapter.feed(line)] + adapter.flush()
    shown = "\n".join(
        str(e.tool.input) if isinstance(e, ToolStart) else e.text
        for e in found
        if isinstance(e, Text | ToolOutput | ToolStart)
    )
    assert all(line in shown for line in lines if line[:1] == "w")
