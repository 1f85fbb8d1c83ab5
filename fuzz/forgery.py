"""A marker in an agent's thoughts, in the output of its tools or in an echoed prompt completes nothing.

The input only chooses: a recording, a text in it that is not the agent's own words, what the marker is put next to, and
whether the line stays where it is or comes again at the end, where the final message stands. It is the marker of a run
of its own, so that no recording completes by itself.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from fuzz.checks import choices, require
from fuzz.damage import FIXTURES, read
from fuzz.places import OWN, is_own, places
from fuzz.renewed import renewed
from fuzz.seeds import FOLDERS, OWN_SEEDS
from ralph.loop.replay import replay
from ralph.transcripts.events import Meta

if TYPE_CHECKING:
    import random
    from pathlib import Path

MARKER = "QUITE_DONE_NOW"
_LARGEST = 100_000
#: How fields are called that hold somebody's words; all others are tried as well, but less often.
_WORDS = re.compile(
    r"(text|thinking|think|reason\w*|content|output|result|stdout|stderr|message|prompt|delta|data|value)$", re.I
)


class Recording(msgspec.Struct, frozen=True):
    adapter: str
    path: Path
    lines: list[str]
    #: where words of others stand, and anything else that is not the agent's: by the name of the place, the lines
    others: dict[str, list[int]]
    rest: dict[str, list[int]]
    #: where the agent's own words stand
    own: dict[str, list[int]]


def check(data: bytes) -> None:
    known = recordings()
    recording = known[int.from_bytes(data[:3], "big") % len(known)]
    rng = choices(data)
    if recording.others or recording.rest:
        forged = with_marker(recording, rng)
        meta = verdict(recording.adapter, forged, rng.choice((0, 1)))
        about = (recording.path.name, [line for line in forged if MARKER in line], meta)
        require(not meta["completed"], "not its own words, but they complete", recording.adapter, *about)


def verdict(adapter: str, lines: list[str], code: int) -> dict[str, object]:
    *_, (last, _) = replay("\n".join(lines).encode("utf-8", "replace"), b"", adapter, code, None, MARKER)
    assert isinstance(last[0], Meta)
    return last[0].meta


def with_marker(recording: Recording, rng: random.Random, *, own: bool = False) -> list[str]:
    """The recording with the marker in one place of somebody else's words, or of the agent's own."""
    kinds = recording.own if own else recording.rest if rng.random() < 0.2 else recording.others
    kinds = kinds or recording.others or recording.rest
    name = rng.choice(list(kinds))
    at = rng.choice(kinds[name])
    value = json.loads(recording.lines[at])
    place = rng.choice([place for place in places(value) if place.name == name])
    place.holder[place.key] = rng.choice(("{}", "{}\n", "\n{}", "word\n{}", "{}\nword", "\n{}\n")).format(MARKER)
    line = json.dumps(value)
    lines = recording.lines[:]
    match rng.randrange(3):
        case 0:
            lines[at] = line
        case 1:
            lines.insert(len(lines) - 1, renewed(line, 1))
        case _:
            lines.append(renewed(line, 1))
    return lines


@cache
def recordings() -> list[Recording]:
    paths = [
        (adapter, path)
        for adapter in sorted(OWN)
        for folder in FOLDERS.get(adapter, ())
        for path in sorted((FIXTURES / folder).glob("*/*.jsonl*"))
        if path.stat().st_size < _LARGEST
    ]
    paths += [(adapter, path) for adapter in sorted(OWN) for path in sorted(OWN_SEEDS.glob(f"{adapter}.jsonl"))]
    found = [_studied(adapter, path) for adapter, path in paths]
    return [one for one in found if one.others or one.rest]


def _studied(adapter: str, path: Path) -> Recording:
    data = read(path)
    lines = data.decode("utf-8", "replace").rstrip("\n").split("\n") if len(data) <= _LARGEST else []
    found: dict[str, dict[str, list[int]]] = {"own": {}, "others": {}, "rest": {}}
    for number, line in enumerate(lines):
        try:
            value = json.loads(line)
        except ValueError:
            continue
        for place in places(value) if isinstance(value, dict) else ():
            said = is_own(adapter, place)
            kind = "own" if said else "others" if _WORDS.search(place.name) else "rest"
            found[kind].setdefault(place.name, []).append(number)
    return Recording(adapter, path, lines, **found)
