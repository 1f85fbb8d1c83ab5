"""Many lines at once are read by a shorter way: the events must be those of the same lines one by one."""

from __future__ import annotations

import random
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent.parent / "recordings"))

from recording import Recording, find

from ralph.agents import adapters as registry
from ralph.transcripts.base import TranscriptAdapter
from ralph.transcripts.events import encode
from ralph.transcripts.safe import SafeAdapter

if TYPE_CHECKING:
    from collections.abc import Iterable

FIXTURES = Path(__file__).parent.parent / "fixtures"
LONGEST = 400
RECORDINGS = [r for r in find(FIXTURES) if len(r.stdout()) + len(r.stderr()) < 1_000_000]
CODEX = ["OpenAI Codex v0.170.0", "--------", "model: gpt-5", "--------", "user", "Do it", "codex", "Well."]
COMMON = ["", " ", "\t", "\r", "x\r", "  indented:", "{", "}", "[", '{"a": 1}', "\x1b[1mbold\x1b[0m", "> hi", "# x"]
#: What a text format gives a meaning to, and what only looks so.
SPECIAL = {
    "codex": [
        *("exec", "codex", "thinking", "user", "tokens used", "1,234", "apply patch", "file update", "**Title**"),
        *("ls in /w succeeded in 3ms:", "cat x in ~/w exited 1 in 2.5s:", "bash -lc 'ls", "-la' in /w", "no"),
        *(" exited 3 in 1m 2s:", " declined:", " in progress:", "x succeeded in 5 succeeded in 9ms:", "Do it"),
        *("ls in /w exited 0 in 5 succeeded in 9ms:", "\x1b[1m succeeded in 3ms:", "exec\r", " succeeded in 3ms:\r"),
        *("mcp: a/b started", "mcp: a/b (completed)", "mcp: a/b (failed)", "mcp startup: x", "ERROR: no", "warning: x"),
        *("Reconnecting... 1/5", "ERROR: Re-connecting... 2/5", "stream error: onnecting...; retrying 1/5 in 2s…"),
        *(
            "patch: completed",
            "/w/a.py",
            "M a.py",
            "apply_patch(x) exited 0 in 2ms:",
            "apply_patch(x) exited 1 in 2ms:",
        ),
        *("2026-01-01T00:00:00.1Z ERROR a::b: c", "٢٠٢٦-01-01T00:00:00Z ERROR a: c", "hook: x", "deprecated: x"),
    ],
    "kiro": [
        *(
            "Using tool: fs_read (trusted)",
            " - Completed in 0.1s",
            " ● Execution failed after 1 s:",
            "x (using tool: a)",
        ),
        *("\x1b[38;5;141m> \x1b[0mwords", "\x1b[1mUsing tool: x\x1b[0m", "⠋ Thinking...", "\r⠋ Thinking...\x1b[0m> a"),
    ],
    "opencode": [
        *("Thinking: hm", "> build · gpt", "\x1b[0m$ \x1b[0mls", "$ ls", "! permission requested: x; auto-rejecting"),
        *("\x1b[91m\x1b[1mError: \x1b[0mno", "\x1b[91m\x1b[1mError: \x1b[0m{", '  "message": "x",', "\x1b[0m"),
    ],
    "goose": [
        *(
            "  ▸ shell",
            "───────",
            "▸ x",
            "Ran into this error: x",
            "error: Ran into it",
            "  error: x",
            "session id: s1",
        ),
        "Please retry if you think this is a transient or recoverable error.",
        "I've reached the maximum number of actions I can do without user input. Would you like me to continue?",
    ],
    "other": ["Thinking...", "...done thinking.", "● Read", "  └ x", "Tokens    ↑ 1", "Error: no"],
}
USUAL = ["word", "two words", "", "exec", "ls in /w", " succeeded in 3ms:", "codex"]


@cache
def lines_of(adapter: str) -> list[str]:
    """Different short lines that the agent really wrote."""
    found: dict[str, None] = {}
    for recording in RECORDINGS:
        if registry.canonical(recording.agent) == adapter:
            for data in (recording.stdout(), recording.stderr()):
                found |= dict.fromkeys(line for line in split(data)[:200] if len(line) < LONGEST)
    return list(found)


def split(data: bytes) -> list[str]:
    return data.decode("utf-8", "replace").removesuffix("\n").split("\n")


def one_by_one(adapter: str, prompt: str | None, chunks: Iterable[tuple[bool, list[str]]]) -> tuple[list[bytes], bool]:
    inner = registry.create(adapter, prompt=prompt)
    events = []
    for stderr, lines in chunks:
        for line in lines:
            events += inner.feed_stderr(line) if stderr else inner.feed(line)
    return [encode(event) for event in events + inner.flush()], inner.structured


def many_at_once(
    adapter: str, prompt: str | None, chunks: Iterable[tuple[bool, list[str]]]
) -> tuple[list[bytes], bool]:
    outer = SafeAdapter(registry.create(adapter, prompt=prompt))
    events = []
    for stderr, lines in chunks:
        events += outer.feed_stderr_lines(lines) if stderr else outer.feed_lines(lines)
    return [encode(event) for event in events + outer.flush()], outer.structured


def chunked(lines: list[str], rng: random.Random, *, stderr: bool) -> list[tuple[bool, list[str]]]:
    chunks = []
    while lines:
        size = rng.choice((1, 2, 3, 7, 30, 500))
        chunks.append((stderr, lines[:size]))
        lines = lines[size:]
    return chunks


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda r: r.id)
def test_recordings_give_the_same(recording: Recording) -> None:
    rng = random.Random(recording.id)
    prompt = rng.choice((None, "Add hello.py"))
    err = chunked(split(recording.stderr()), rng, stderr=True)
    out = chunked(split(recording.stdout()), rng, stderr=False)
    # Each stream in its order, the two mixed by chance.
    order = [True] * len(err) + [False] * len(out)
    rng.shuffle(order)
    chunks = [(err if stderr else out).pop(0) for stderr in order]
    assert many_at_once(recording.agent, prompt, chunks) == one_by_one(recording.agent, prompt, chunks)


@pytest.mark.parametrize("adapter", registry.names())
def test_any_lines_in_any_chunks_give_the_same(adapter: str) -> None:
    kind = type(registry.create(adapter))
    quick = {kind.feed_block, kind.feed_stderr_block} - {
        TranscriptAdapter.feed_block,
        TranscriptAdapter.feed_stderr_block,
    }
    anything = st.text(max_size=12).filter(lambda text: "\n" not in text)
    special = SPECIAL.get(adapter, [line for lines in SPECIAL.values() for line in lines])
    line = st.sampled_from([*special, *COMMON]) | st.sampled_from([*CODEX, *lines_of(adapter)]) | anything
    # Few different lines, often repeated: so they meet in many orders.
    run = settings(max_examples=60 if quick else 5)(
        given(
            pool=st.lists(line, min_size=2, max_size=6),
            seed=st.integers(0, 1 << 32),
            begin=st.sampled_from([None, False, True]),
            prompt=st.sampled_from([None, "Do it", "word\ntwo words"]),
        )(check)
    )
    run(adapter)


def check(adapter: str, pool: list[str], seed: int, begin: bool | None, prompt: str | None) -> None:
    rng = random.Random(seed)
    chunks = [] if begin is None else [(begin, CODEX)]
    for _ in range(rng.randrange(6)):
        lines = rng.choices([*pool, *USUAL], k=rng.choice((1, 5, 20, 100)))
        chunks.append((rng.random() < 0.5 if begin is None else begin, lines))
    assert many_at_once(adapter, prompt, chunks) == one_by_one(adapter, prompt, chunks)


def test_a_retry_after_the_tokens_is_one_among_many_lines_too() -> None:
    chunks = [(True, [*CODEX, "tokens used", "12", "stream error: onnecting...; retrying 1/5 in 2s…", "word"])]
    found = many_at_once("codex", None, chunks)
    assert found == one_by_one("codex", None, chunks)
    assert any(b'"retry"' in event for event in found[0])
