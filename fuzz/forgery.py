"""A marker in an agent's thoughts, in the output of its tools or in an echoed prompt completes nothing.

The input only chooses: a recording, a piece of text in it that its adapter does not take for the agent's own words, and
where to put the marker instead. It is the marker of a run of its own, so that no recording completes by itself.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from fuzz.checks import choices, require
from fuzz.damage import FIXTURES, read
from fuzz.seeds import FOLDERS
from ralph.loop.replay import replay
from ralph.transcripts import registry
from ralph.transcripts.events import Meta, Tag, Text, ToolOutput

if TYPE_CHECKING:
    import random
    from pathlib import Path

_MARKER = "QUITE_DONE_NOW"
_LARGEST = 200_000


class Recording(msgspec.Struct, frozen=True):
    adapter: str
    path: Path
    data: bytes
    #: texts that are not the agent's words and occur in its raw output as they are
    others: list[str]


def check(data: bytes) -> None:
    known = _recordings()
    rng = choices(data)
    adapter, path = known[int.from_bytes(data[:3], "big") % len(known)]
    recording = _studied(adapter, path)
    if recording is None:
        return
    other = rng.choice(recording.others)
    start = rng.randrange(max(1, len(other) - 8))
    piece = other[start : start + rng.randint(8, 40)]
    forged = _with_marker(recording.data, piece, rng)
    for code in (0, 1):
        *_, (last, _) = replay(forged, b"", adapter, code, None, _MARKER)
        assert isinstance(last[0], Meta)
        require(not last[0].meta["completed"], "not its own words, but they complete", path.name, piece, last[0].meta)


def _with_marker(data: bytes, piece: str, rng: random.Random) -> bytes:
    written = json.dumps(piece, ensure_ascii=False)[1:-1].encode()
    ends = rng.choice((("\\n", "\\n"), ("", "\\n"), ("\\n", ""), ("", "")))
    return data.replace(written, (ends[0] + _MARKER + ends[1]).encode())


@cache
def _recordings() -> list[tuple[str, Path]]:
    return [
        (adapter, path)
        for adapter, folders in sorted(FOLDERS.items())
        if adapter in registry.names()
        for folder in folders
        for path in sorted((FIXTURES / folder).glob("*/*.jsonl*"))
        if path.stat().st_size < _LARGEST
    ]


@cache
def _studied(adapter: str, path: Path) -> Recording | None:
    data = read(path)
    if len(data) > _LARGEST:
        return None
    words: list[str] = []
    others: list[str] = []
    for events, _ in replay(data, b"", adapter, 0, None, _MARKER):
        for event in events:
            match event:
                case Text(tag=Tag.AI, text=text):
                    words.append(text)
                case Text(tag=Tag.THINK | Tag.PROMPT | Tag.USER | Tag.TOOL, text=text) | ToolOutput(text=text):
                    others += [line for line in text.split("\n") if len(line) >= 12]
    said = "\n".join(words)
    others = [o for o in dict.fromkeys(others) if not any(o[i : i + 8] in said for i in range(len(o) - 7))]
    return Recording(adapter, path, data, others) if others else None
