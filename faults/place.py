"""Where a fault happens: a throw-away repository with its own HOME, in which the real command runs agents."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faults.lost import missing
from faults.record import Record, describe

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Sequence

KIT = Path(__file__).with_name("kit.py")
#: How ralph reports a bug of its own.
_BUG = (b"Traceback (most recent call last)", b"this is a bug in ralph")


class HangError(Exception):
    """Something took too long."""


class Running:
    """A running `ralph`."""

    def __init__(self, place: Place, process: subprocess.Popen[bytes]) -> None:
        self._place = place
        self.process = process
        self.pid = process.pid

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def ended(self, within: float = 30.0) -> int:
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise HangError(f"ralph was still running after {within:g} s") from None


class Place:
    def __init__(self, *, short: bool) -> None:
        self.short = short
        self.root = Path(tempfile.mkdtemp(prefix="ralph-fault-"))
        self.repo, self.home, self.side, self.tmp = (self.root / n for n in ("repo", "home", "side", "tmp"))
        for folder in (self.repo, self.home, self.side, self.tmp):
            folder.mkdir()
        self.screen = self.root / "screen"
        self.errors = self.root / "errors"
        self.observed: list[str] = []
        self.wrong: list[str] = []
        #: how many bytes an agent wrote and the journal lacks; None where that does not apply
        self.lost: int | None = None
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("RALPH_", "GIT_", "XDG_", "AGENT_", "PYTHON"))}
        self.env = kept | {
            "HOME": str(self.home),
            "TMPDIR": str(self.tmp),
            "FAULT_SIDE": str(self.side),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            "RALPH_TRUST": "1",
            "RALPH_GRACE": "1",
            "RALPH_RETRY_DELAY": "0.1",
        }
        self.make_repository(self.repo)

    def make_repository(self, folder: Path) -> None:
        (folder / "PROMPT.md").write_text("Do the next thing on the list.\n")
        identity = ["-c", "user.name=faults", "-c", "user.email=faults@localhost"]
        for arguments in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "start"]):
            subprocess.run(["git", *arguments], cwd=folder, env=self.env, check=True)

    def remove(self) -> None:
        mounted = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        for folder in reversed(mounted):
            if folder.startswith(f"{self.root}/"):
                subprocess.run(["umount", "-l", folder], capture_output=True, check=False)
        shutil.rmtree(self.root, ignore_errors=True)

    # -- injecting the fault

    def agent(self, code: str, name: str = "agent") -> str:
        """A command that runs this Python code, with everything from `kit` imported."""
        shutil.copy(KIT, self.root / "kit.py")
        program = self.root / f"{name}.py"
        program.write_text(f"import sys\nsys.path.insert(0, {str(self.root)!r})\nfrom kit import *\n{code}\n")
        return f"exec {shlex.quote(sys.executable)} -ISB {shlex.quote(str(program))}"

    def start(self, *arguments: str, cwd: Path | None = None, **options: Any) -> Running:
        """Starts `ralph`. Its output goes to files unless `options` (for Popen) say otherwise."""
        with open(self.screen, "ab") as screen, open(self.errors, "ab") as errors:
            chosen: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": screen, "stderr": errors, "env": self.env}
            process = subprocess.Popen(ralph(*arguments), cwd=cwd or self.repo, **(chosen | options))
        return Running(self, process)

    def run(self, agent: str, *flags: str, **options: Any) -> Running:
        return self.start("run", "--ui", "plain", "--agent-cmd", agent, *flags, **options)

    def until(self, condition: Callable[[], bool], what: str, within: float = 30.0) -> None:
        end = time.monotonic() + within
        while not condition():
            if time.monotonic() > end:
                raise HangError(f"{what}: not within {within:g} s")
            time.sleep(0.01)

    def ready(self) -> int:
        """Waits until the agent calls `ready()`; its process ID."""
        mark = self.side / "ready"
        self.until(mark.exists, "the agent's ready()")
        return int(mark.read_text())

    # -- recording what happened

    def see(self, code: int, *, torn: bool = False, cut: bool = False, shown: bool = True) -> Record:
        """Records how the newest run ended, by its exit code and journal, and checks what must hold for every run.

        `torn`: ralph was killed, so that the journal has no end and its last line may be incomplete. `cut`: the journal
        could no longer be written, so that it may lack its end but must not have an incomplete line.
        """
        record = Record.newest(self.repo)
        self.observed.append(describe(code, record, end=not cut))
        self.wrong += record.faults(torn=torn, cut=cut)
        self._count_lost(record)
        self.no_bug()
        if shown and record.root is not None:
            self.shows()
        return record

    def no_bug(self) -> None:
        """Looks at stderr only: the screen also shows the output of agents, which may have bugs of their own."""
        text = self.errors.read_bytes() if self.errors.exists() else b""
        if any(sign in text for sign in _BUG):
            self.wrong.append(f"a bug in ralph: {text[-300:].decode('utf-8', 'replace')}")
        crashes = [*self.repo.glob(".ralph/ralph-crash-*"), *self.tmp.glob("ralph-crash-*")]
        self.wrong += [f"{file.name} was written" for file in crashes]

    def shows(self) -> None:
        """Checks that ralph can read its own journal."""
        for command in (["show"], ["runs"]):
            try:
                done = subprocess.run(
                    ralph(*command),
                    cwd=self.repo,
                    env=self.env,
                    capture_output=True,
                    stdin=subprocess.DEVNULL,
                    timeout=60,
                )
            except subprocess.TimeoutExpired:
                raise HangError(f"ralph {command[0]}") from None
            if done.returncode or any(sign in done.stderr for sign in _BUG):
                self.wrong.append(f"`ralph {command[0]}` ends with {done.returncode}: {done.stderr[-200:]!r}")

    def _count_lost(self, record: Record) -> None:
        for file in sorted(self.side.glob("*.std*")):
            number, _, stream = file.name.partition(".")
            raw = record.raw(int(number), stream)
            self.lost = (self.lost or 0) + missing(file, raw)

    def check(self, what: str, holds: bool, detail: object = "") -> None:
        """Records another observation; the expectation must name it, too."""
        self.observed.append(what if holds else f"NOT {what} ({detail})")

    def reported(self, *words: str) -> None:
        """Checks that ralph printed these words, on stdout or stderr."""
        text = "".join(f.read_text(errors="replace") for f in (self.screen, self.errors) if f.exists())
        missing_words = [word for word in words if word not in text]
        self.check("reported", not missing_words, f"{missing_words} is not in: {text[-300:]}")

    @property
    def seen(self) -> str:
        return "; ".join([*self.observed, *(f"BUT {what}" for what in self.wrong)])


def ralph(*arguments: str) -> Sequence[str]:
    """The command that is installed next to this interpreter, as a user starts it."""
    return [str(Path(sys.executable).with_name("ralph")), *arguments]
