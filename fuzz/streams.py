"""Splits an input into what an agent's process prints (lines of stdout and stderr, in order) and its prompt.

Seeds are unchanged recordings. A line that starts with byte 2 belongs to stderr, one with byte 1 to the prompt.
"""

from __future__ import annotations

import msgspec

from fuzz.framing import lines_of

STDERR = b"\x02"
PROMPT = b"\x01"


class Streams(msgspec.Struct, frozen=True):
    #: whether the line belongs to stderr, and the line
    lines: list[tuple[bool, str]]
    prompt: str | None

    @classmethod
    def of(cls, data: bytes) -> Streams:
        lines: list[tuple[bool, str]] = []
        prompt: list[str] = []
        for line in lines_of(data):
            if line[:1] == "\x01":
                prompt.append(line[1:])
            else:
                on_stderr = line[:1] == "\x02"
                lines.append((on_stderr, line[on_stderr:]))
        return cls(lines, "\n".join(prompt) if prompt else None)
