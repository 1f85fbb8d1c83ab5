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


def blocking(checks: list[Check], baseline: dict[str, bool], *, strict: bool) -> list[Check]:
    """The failures that count: without `strict`, not those that also failed before the run."""
    return [c for c in checks if not c.ok and (strict or baseline.get(c.command, True))]


def feedback(failed: list[Check]) -> str:
    """What the next prompt says about failed checks."""
    parts = ["The previous iteration said that the work was complete, but these checks fail. Fix them first.\n"]
    for check in failed:
        parts.append(f"$ {check.command}\n({check.why})\n{check.tail}\n")
    return "\n".join(parts)
