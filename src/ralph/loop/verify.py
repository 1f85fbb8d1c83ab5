"""Checks that ralph runs itself: it accepts a claim to be done only if they pass."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import msgspec

from ralph.runners.process import Command, Deadlines, EndKind
from ralph.system.programs import which

if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.runners.process import Ended, Supervisor

_KEEP = 4000
_NAME = 80
#: With more checks than this, a sentence counts them instead.
_NAMED = 3
_FILES = 5
_WORD = re.compile(rb"\A\S+(?=\s)")


class Check(msgspec.Struct, frozen=True):
    """One command's result."""

    command: str
    ok: bool
    why: str
    seconds: float
    #: the end of what it printed
    tail: str
    stopped: bool = False
    failed_before: bool = False
    #: the files that it uses and that have changed since the start of the run
    changed: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The command in a sentence."""
        first, _, more = self.command.strip().partition("\n")
        return f"`{first[:_NAME]}{' …' if more or len(first) > _NAME else ''}`"


class _Tail:
    """Keeps the end of a command's output, both streams as they come."""

    def __init__(self, on_tick: Callable[[], None], until: float | None) -> None:
        self.data = b""
        self.tick = on_tick
        self._until = until

    def stdout(self, chunk: bytes) -> None:
        data = self.data + chunk
        self.data = data[-_KEEP:]
        if len(data) > _KEEP:
            # Drop a word that is cut in half: the masker would not recognize half a key.
            self.data = _WORD.sub(b"", self.data, count=1)

    stderr = stdout

    def exited(self) -> None:
        pass

    def stop_reason(self) -> str | None:
        over = self._until is not None and time.monotonic() >= self._until
        return "reached the run time limit" if over else None

    def deadline(self) -> float | None:
        return self._until

    def finished(self) -> bool:
        return False


def run_check(
    supervisor: Supervisor,
    command: str,
    workdir: str,
    env: dict[str, str],
    timeout: float | None,
    on_tick: Callable[[], None] = lambda: None,
    until: float | None = None,
) -> Check:
    """`until` is when the run itself must end, by the monotonic clock."""
    tail = _Tail(on_tick, until)
    shell = which("bash") or "sh"
    ended = supervisor.run(Command([shell, "-c", command], env, workdir), tail, Deadlines(wall=timeout, grace=2.0))
    return Check(
        command=command,
        ok=ended.kind is EndKind.EXITED and ended.status == 0,
        why=_why(ended),
        seconds=ended.seconds,
        tail=tail.data.decode("utf-8", "replace").strip(),
        stopped=ended.kind is EndKind.STOPPED,
    )


def _why(ended: Ended) -> str:
    return f"timed out: {ended.reason}" if ended.kind is EndKind.WALL else ended.reason


def blocking(checks: list[Check], *, excused: bool) -> list[Check]:
    """The failures that count: all of them, or, if those from before the run are `excused`, the new ones."""
    return [c for c in checks if not c.ok and not (excused and c.failed_before)]


def describe(checks: list[Check]) -> str:
    """What was seen when the checks ran, for the end of a run. Those that fail are the ones that were excused."""
    passing, failing = [c for c in checks if c.ok], [c for c in checks if not c.ok]
    parts = [_all_of(passing, "passes", "pass")] if passing else []
    parts += [f"{_all_of(failing, 'still fails', 'still fail')}, as before the run"] if failing else []
    parts += [describe_changed(check) for check in checks if check.changed]
    return "; ".join(parts)


def describe_changed(check: Check) -> str:
    more = len(check.changed) - _FILES
    files = ", ".join(check.changed[:_FILES]) + (f" and {more} more" if more > 0 else "")
    which = f"{files}, which {check.name} uses," if len(check.changed) == 1 else f"{files} (used by {check.name})"
    return f"{which} {'has' if len(check.changed) == 1 else 'have'} changed since the start of the run"


def _all_of(checks: list[Check], one: str, many: str) -> str:
    names = [check.name for check in checks]
    if len(names) == 1:
        return f"{names[0]} {one}"
    if len(names) > _NAMED:
        return f"{len(names)} checks {many}"
    return f"{', '.join(names[:-1])} and {names[-1]} {many}"


def feedback(failed: list[Check]) -> str:
    """What the next prompt says about failed checks."""
    parts = ["The previous iteration said that the work was complete, but these checks fail. Fix them first.\n"]
    for check in failed:
        before = "; it failed before the run too" if check.failed_before else ""
        parts.append(f"$ {check.command}\n({check.why}{before})\n{check.tail}\n")
    return "\n".join(parts)
