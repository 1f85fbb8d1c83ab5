"""Generates RTF1 as an agent would print it, the same each time."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from ralph.transcripts.events import (
    Tag,
    Text,
    ToolCall,
    ToolEnd,
    ToolOutput,
    ToolRef,
    ToolResult,
    ToolStart,
    ToolStatus,
    TranscriptEvent,
    Usage,
    UsageEvent,
    encode,
)
from ralph.transcripts.rtf1 import SENTINEL

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SAMPLE = (
    "the test for parser fails because of an empty line; I will read src/app/parser.py first and then change "
    "how tokens are counted, so that a naïve “quoted” string → still ends where it should. assert result == expected, "
    "def main(argv: list[str]) -> int: return 0 Traceback (most recent call last): 42 passed, 1 failed in 3.21s"
)
_WORDS = _SAMPLE.split()


def write(path: Path, json_only: Path, size: int) -> int:
    """Writes about `size` bytes of RTF1, and the same events as bare JSON. Returns the number of lines."""
    rng = random.Random(20260101)
    sentinel = SENTINEL.encode()
    written = lines = 0
    with path.open("wb") as rtf1, json_only.open("wb") as bare:
        for event in _endless(rng):
            body = encode(event) + b"\n"
            rtf1.write(sentinel)
            rtf1.write(body)
            bare.write(body)
            written += len(sentinel) + len(body)
            lines += 1
            if written >= size:
                return lines
    raise AssertionError("an endless agent ended")


def _endless(rng: random.Random) -> Iterator[TranscriptEvent]:
    """Turns: some thinking, some text, a few tools with output of mixed lengths, a usage line.

    Lengths follow recordings of real agents: a median of a few hundred bytes per line, with a long tail.
    """
    number = 0
    while True:
        for _ in range(rng.randrange(3)):
            yield Text(Tag.THINK, _words(rng, rng.randint(10, 60)))
        for _ in range(rng.randint(1, 4)):
            yield Text(Tag.AI, _words(rng, rng.randint(4, 50)))
        for _ in range(rng.randrange(4)):
            number += 1
            call = f"toolu_{number:08d}"
            yield ToolStart(ToolCall(call, "Bash", {"command": _words(rng, rng.randint(3, 20)), "timeout": 120000}))
            for _ in range(rng.randint(1, 3)):
                yield ToolOutput(ToolRef(call, "Bash"), _output(rng))
            yield ToolEnd(ToolResult(call, rng.choice((ToolStatus.OK, ToolStatus.FAIL)), rng.randint(1, 9000), "Bash"))
        prompt, completion = rng.randint(1000, 90000), rng.randint(1, 4000)
        yield UsageEvent(Usage(prompt, completion, prompt + completion, "bench-model", cost_usd=completion / 100_000))


def _words(rng: random.Random, count: int) -> str:
    return " ".join(rng.choices(_WORDS, k=count))


def _output(rng: random.Random) -> str:
    """Mostly one line, sometimes a screenful, rarely a whole file."""
    lines = rng.choices((1, rng.randint(2, 8), rng.randint(20, 60)), (70, 25, 5))[0]
    return "\n".join("    " * rng.randrange(3) + _words(rng, rng.randint(3, 14)) for _ in range(lines))
