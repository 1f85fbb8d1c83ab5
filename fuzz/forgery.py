"""A marker in an agent's thoughts, in the output of its tools or in an echoed prompt completes nothing.

The input only chooses: a recording, a text in it that is not the agent's own, what the marker is placed next to, and
whether the line stays where it is or is repeated at the end, where the final message is. The marker occurs in no
recording, so that none completes by itself.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from fuzz.checks import choices, require
from fuzz.damage import FIXTURES, read
from fuzz.new_ids import with_new_ids
from fuzz.places import OWN, is_own, places
from fuzz.seeds import FOLDERS, OWN_SEEDS
from ralph.judging.replay import replay
from ralph.transcripts.events import Meta

if TYPE_CHECKING:
    import random
    from pathlib import Path

MARKER = "QUITE_DONE_NOW"
_LARGEST = 100_000
#: Names of fields that usually hold text. All others are tried, too, but less often.
_WORDS = re.compile(
    r"(text|thinking|think|reason\w*|content|output|result|stdout|stderr|message|prompt|delta|data|value)$", re.I
)


class Recording(msgspec.Struct, frozen=True):
    adapter: str
    path: Path
    lines: list[str]


#: For the name of a place, where it occurs: the recording and the line number.
Sites = dict[str, list[tuple[Recording, int]]]


class AdapterSites(msgspec.Struct, frozen=True):
    """The places in one adapter's recordings: text of others, other fields, and the agent's own text."""

    others: Sites
    rest: Sites
    own: Sites


def check(data: bytes) -> None:
    rng = choices(data)
    search(rng.choice(list(OWN)), rng)


def search(adapter: str, rng: random.Random) -> None:
    sites = all_sites()[adapter]
    recording, forged = with_marker(sites.rest if rng.random() < 0.2 else sites.others, rng)
    meta = verdict(adapter, forged, rng.choice((0, 0, 1)))
    about = (recording.path.name, [line for line in forged if MARKER in line], meta)
    require(not meta["completed"], "text that is not the agent's own completes", adapter, *about)


def verdict(adapter: str, lines: list[str], code: int) -> dict[str, object]:
    *_, (last, _) = replay("\n".join(lines).encode("utf-8", "replace"), b"", adapter, code, None, MARKER)
    assert isinstance(last[0], Meta)
    return last[0].meta


def with_marker(sites: Sites, rng: random.Random) -> tuple[Recording, list[str]]:
    """A recording, and its lines with the marker in one of the places. Every kind of place is equally likely."""
    name = rng.choice(list(sites))
    recording, at = rng.choice(sites[name])
    value = json.loads(recording.lines[at])
    place = rng.choice([place for place in places(value) if place.name == name])
    place.holder[place.key] = rng.choice(("{}", "{}\n", "\n{}", "word\n{}", "{}\nword", "\n{}\n")).format(MARKER)
    line = json.dumps(value)
    lines = recording.lines[:]
    match rng.randrange(3):
        case 0:
            lines[at] = line
        case 1:
            lines.insert(len(lines) - 1, with_new_ids(line, 1))
        case _:
            lines.append(with_new_ids(line, 1))
    return recording, lines


@cache
def all_sites() -> dict[str, AdapterSites]:
    found = {}
    for adapter in sorted(OWN):
        paths = [p for folder in FOLDERS.get(adapter, ()) for p in sorted((FIXTURES / folder).glob("*/*.jsonl*"))]
        sites = AdapterSites({}, {}, {})
        for path in [*paths, *sorted(OWN_SEEDS.glob(f"{adapter}.jsonl"))]:
            if path.stat().st_size < _LARGEST and len(data := read(path)) < _LARGEST:
                lines = data.decode("utf-8", "replace").rstrip("\n").split("\n")
                _collect(Recording(adapter, path, lines), sites)
        found[adapter] = sites
    return found


def _collect(recording: Recording, sites: AdapterSites) -> None:
    for number, line in enumerate(recording.lines):
        try:
            value = json.loads(line)
        except ValueError:
            continue
        for place in places(value) if isinstance(value, dict) else ():
            own = is_own(recording.adapter, place)
            kind = sites.own if own else sites.others if _WORDS.search(place.name) else sites.rest
            kind.setdefault(place.name, []).append((recording, number))
