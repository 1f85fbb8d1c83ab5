"""A run that is interrupted twice and then reaches its budget, in exactly the right iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from endurance import account, worker
from endurance.night import Interruption, Workspace
from endurance.readback import Journal
from processes import eventually

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

_LAST = 14
_LIMIT = 120.0
#: The ceiling is exactly what this many iterations use if nothing is lost.
_UNTIL = 9
_LIMIT_REACHED = 2


class Reached(NamedTuple):
    said: str
    complaints: list[str]


def reach(root: Path, seed: int, which: str) -> Reached:
    """`which` is "tokens" or "cost"."""
    space = Workspace(root, seed, _LAST)
    planned = account.Sum()
    for number in range(1, _UNTIL + 1):
        for usage in worker.usages(seed, number, _LAST):
            planned = planned.plus(usage)
    most = float(planned.tokens if which == "tokens" else planned.cost)
    flag = f"--max-{which}"
    process = space.start(flag, f"{most:.15g}")
    # An iteration that gets SIGTERM loses no usage that it has reported; one that is killed may.
    for number, what, interruption in ((3, "end", Interruption.TERM), (6, "usage", Interruption.KILL)):
        if not _wait(space, process, number, what):
            space.complaints.append(f"iteration {number} never reached its {what}:\n{space.screen()}")
        space.interrupt(process, interruption)
        process = space.resume()
    code = process.wait(_LIMIT)
    used = _used(space.run, which)
    due = next((n for n, amount in enumerate(used, 1) if amount >= most), 0)
    if (code, len(used)) != (_LIMIT_REACHED, due):
        space.complaints.append(
            f"{flag} {most:g} is reached in iteration {due}; ralph ended after {len(used)}: {code}\n{space.screen()}"
        )
    space.complaints += account.audit(space.run, space.ledger)
    code = space.resume().wait(_LIMIT)
    if (code, len(_used(space.run, which))) != (_LIMIT_REACHED, due):
        space.complaints.append(f"resumed with the same budget, it ended with {code}:\n{space.screen()}")
    code = space.resume(flag, f"{most * 100:.15g}").wait(_LIMIT)
    if code != 0:
        space.complaints.append(f"resumed with a larger budget, it ended with {code}:\n{space.screen()}")
    space.complaints += account.audit(space.run, space.ledger)
    space.check_processes("at the end")
    said = f"{flag} {most:g} reached in iteration {due} with {used[due - 1]:g}, {used[due - 2]:g} the one before"
    return Reached(said, space.complaints)


def _wait(space: Workspace, process: subprocess.Popen[bytes], number: int, what: str) -> bool:
    def there() -> bool:
        return space.reached(number, what) or process.poll() is not None

    return eventually(there, _LIMIT) and process.poll() is None


def _used(run: Path, which: str) -> list[float]:
    """The usage after each iteration, from the bytes that reached the run."""
    journal = Journal(run)
    running = account.Sum()
    found = []
    for number in journal.iterations():
        for usage in account.spent(journal.raw(number)):
            running = running.plus(usage)
        found.append(float(running.tokens if which == "tokens" else running.cost))
    return found
