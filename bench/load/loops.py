"""The loops: four formats and five kinds of deadline, each combination once."""

from __future__ import annotations

import shlex
import subprocess
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bench import material
from bench.measure import MB, environment, ralph
from bench.sessions import SESSIONS
from ralph.transcripts.events import Text, ToolOutput, decode

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMATS = ("plain", "rtf1", "claude", "codex")
RATE = MB
_SIZE = 6 * MB
_AGENT = Path(__file__).with_name("agent.py")
GRACE = 5.0


class Kind(StrEnum):
    """Which deadline a loop tests."""

    IDLE = "idle"
    WALL = "wall"
    GRACE = "grace"
    RUNTIME = "max-runtime"
    STOP = "Ctrl-C"


class Loop(msgspec.Struct, frozen=True):
    """One loop: its own repository, its agent, its deadlines."""

    number: int
    kind: Kind
    form: str
    root: Path
    #: in seconds: how long the agent prints before it is silent (0: forever), and when its deadline is
    flood: float
    after: float
    iterations: int

    @property
    def repo(self) -> Path:
        return self.root / f"loop{self.number:02d}"

    @property
    def log(self) -> Path:
        return self.root / f"loop{self.number:02d}.log"

    @property
    def material(self) -> Path:
        return self.root / self.form

    def start(self, ui: str) -> subprocess.Popen[bytes]:
        deaf = "deaf" if self.kind is Kind.GRACE else "hears"
        agent = [sys.executable, "-ISB", _AGENT, self.material, self.log, RATE, self.flood, deaf]
        limit = {Kind.IDLE: "--idle-timeout", Kind.RUNTIME: "--max-runtime", Kind.STOP: ""}.get(
            self.kind, "--wall-timeout"
        )
        argv = ralph(
            "run",
            *(str(self.iterations), "--agent-cmd", shlex.join(map(str, agent)), "--transcript", self.form),
            *("--ui", ui, "--grace", str(GRACE), *([limit, str(self.after)] if limit else [])),
        )
        with open(self.root / f"loop{self.number:02d}.screen", "wb") as screen:
            return subprocess.Popen(
                argv,
                cwd=self.repo,
                env=environment(self.root),
                stdin=subprocess.DEVNULL,
                stdout=screen,
                stderr=screen,
                # As if each had its own terminal: Linux divides processor time by session.
                start_new_session=True,
            )


def prepare(root: Path, count: int, seconds: float) -> list[Loop]:
    """Creates the loops and everything on disk that they need. Each ends within `seconds`, and not much before."""
    for form in FORMATS:
        (root / form).write_bytes(_material(form, root))
    loops = list(_loops(root, count, seconds))
    for loop in loops:
        loop.repo.mkdir()
        (loop.repo / "PROMPT.md").write_text("Print.\n")
        for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "start"]):
            identity = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"]
            subprocess.run(["git", *identity, *arguments], cwd=loop.repo, env=environment(root), check=True)
    return loops


def _loops(root: Path, count: int, seconds: float) -> Iterator[Loop]:
    for number in range(count):
        form, kind = FORMATS[number % len(FORMATS)], list(Kind)[number // len(FORMATS) % len(Kind)]
        # Not all at the same moment: each deadline must pass while the other loops are printing.
        shift = number % len(FORMATS) / 2
        match kind:
            case Kind.IDLE:  # four times, silent for a quarter of the time
                how = (seconds / 4 * 0.7 - shift, seconds / 4 * 0.25, 4)
            case Kind.WALL:
                how = (0.0, seconds / 3 - shift - 1, 3)
            case Kind.GRACE:
                how = (0.0, seconds / 2 - GRACE - shift - 2, 2)
            case Kind.RUNTIME | Kind.STOP:
                how = (0.0, seconds - 3 * shift - 3, 1)
        yield Loop(number, kind, form, root, *how)


def _material(form: str, root: Path) -> bytes:
    match form:
        case "plain" | "rtf1":
            rtf1, bare = root / "made.rtf1", root / "made.jsonl"
            material.write(rtf1, bare, _SIZE)
            return rtf1.read_bytes() if form == "rtf1" else _words(bare)
        case _:
            session = next(s for s in SESSIONS if s.adapter == form and s.json)
            return "\n".join(session.lines(_SIZE)).encode() + b"\n"


def _words(bare: Path) -> bytes:
    """What an agent with plain output would have printed."""
    events = (decode(line) for line in bare.read_bytes().splitlines())
    return b"".join(e.text.encode() + b"\n" for e in events if isinstance(e, Text | ToolOutput))
