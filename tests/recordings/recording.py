"""Recordings of real CLIs, and what must come out of them."""

from __future__ import annotations

import gzip
import json
import re
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec

_OUTPUTS = (".jsonl", ".json", ".txt")
EXPECT = Path(__file__).parent / "expect"


class Tools(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    started: int | None = None
    ok: int | None = None
    fail: int | None = None
    unknown: int | None = None


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the script behind a recording made the agent do, and so what we must see. Absent: not looked at."""

    #: patterns of the recording's name without its suffix
    match: list[str]
    outcome: str | list[str]
    completed: bool = False
    versions: str = "*"
    tools: Tools | None = None
    #: True: there must be a session id; False: there must be none
    session: bool | None = None
    #: exact numbers, those that are known
    usage: dict[str, bool | float | str] | None = None
    no_usage: bool = False
    #: in the agent's own words (AI), in its thoughts (THINK), in tools' output
    says: list[str] = []
    thinks: list[str] = []
    tool_says: list[str] = []
    #: nowhere in the agent's own words
    never_says: list[str] = []
    #: names of tools that must have been started
    tool_names: list[str] = []
    #: a reset time or a retry-after must be known
    resets: bool = False
    #: kinds of meta events that must be there
    kinds: list[str] = []
    #: how often the agent itself says the marker
    markers: int = 1
    #: the exit code, where the recording does not say
    exit: int | None = None


class Recording(msgspec.Struct, frozen=True):
    agent: str
    version: str
    name: str
    path: Path

    @property
    def id(self) -> str:
        return f"{self.agent}/{self.version}/{self.name}"

    def stdout(self) -> bytes:
        return read(self.path)

    def stderr(self) -> bytes:
        base = self.path.parent / (self.name + ".stderr")
        return next((read(p) for p in (base, base.with_name(base.name + ".gz")) if p.exists()), b"")

    def exit_code(self, case: Case) -> int:
        if case.exit is not None:
            return case.exit
        facts: dict[str, Any] = json.loads((self.path.parent / f"{self.name}.meta.json").read_text())
        if "exit_code" in facts:
            return int(facts["exit_code"])
        found = re.search(r"^exit=(-?\d+)", str(facts.get("raw")), re.MULTILINE)
        assert found, f"{self.id}: the recording does not say its exit code; the case must"
        return int(found.group(1))


def read(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def find(root: Path) -> list[Recording]:
    found = []
    for path in sorted(root.glob("*/*/*")):
        plain = path.name.removesuffix(".gz")
        suffix = next((s for s in _OUTPUTS if plain.endswith(s)), None)
        if suffix is None or plain.endswith(".meta.json"):
            continue
        found.append(Recording(path.parent.parent.name, path.parent.name, plain.removesuffix(suffix), path))
    return found


def cases(agent: str) -> list[Case]:
    path = EXPECT / f"{agent}.toml"
    if not path.exists():
        return []
    return msgspec.convert(tomllib.loads(path.read_text()), dict[str, list[Case]]).get("case", [])


def case_for(recording: Recording) -> Case | None:
    """The first that matches."""
    for case in cases(recording.agent):
        if fnmatchcase(recording.version, case.versions) and any(fnmatchcase(recording.name, m) for m in case.match):
            return case
    return None
