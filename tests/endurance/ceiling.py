"""A run that is cut short twice and then reaches its budget: at the right iteration, neither before nor after."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from endurance import account, worker
from endurance.night import Bed, Blow
from endurance.readback import Journal
from processes import eventually

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

_LAST = 14
_LIMIT = 120.0
#: What the first so many iterations use, if nothing of it is lost, is the ceiling to the token.
_UNTIL = 9
_LIMIT_REACHED = 2


class Reached(NamedTuple):
    said: str
    complaints: list[str]


def reach(root: Path, seed: int, which: str) -> Reached:
    """`which` is "tokens" or "cost"."""
    bed = Bed(root, seed, _LAST)
    planned = account.Sum()
    for number in range(1, _UNTIL + 1):
        for usage in worker.usages(seed, number, _LAST):
            planned = planned.plus(usage)
    most = float(planned.tokens if which == "tokens" else planned.cost)
    flag = f"--max-{which}"
    process = bed.start(flag, f"{most:.15g}")
    # Ended politely, an iteration loses nothing that it has told; killed, it may.
    for number, what, blow in ((3, "end", Blow.TERM), (6, "usage", Blow.KILL)):
        if not _wait(bed, process, number, what):
            bed.complaints.append(f"iteration {number} never came to its {what}:\n{bed.screen()}")
        bed.strike(process, blow)
        process = bed.go_on()
    code = process.wait(_LIMIT)
    used = _used(bed.run, which)
    due = next((n for n, amount in enumerate(used, 1) if amount >= most), 0)
    if (code, len(used)) != (_LIMIT_REACHED, due):
        bed.complaints.append(
            f"{flag} {most:g} is reached in iteration {due}; ralph ended after {len(used)} with {code}:\n{bed.screen()}"
        )
    bed.complaints += account.audit(bed.run, bed.ledger)
    code = bed.go_on().wait(_LIMIT)
    if (code, len(_used(bed.run, which))) != (_LIMIT_REACHED, due):
        bed.complaints.append(f"gone on with without more to spend, it ended with {code}:\n{bed.screen()}")
    code = bed.go_on(flag, f"{most * 100:.15g}").wait(_LIMIT)
    if code != 0:
        bed.complaints.append(f"with more to spend it ended with {code}:\n{bed.screen()}")
    bed.complaints += account.audit(bed.run, bed.ledger)
    bed.check_processes("at the end")
    said = f"{flag} {most:g} reached in iteration {due} with {used[due - 1]:g}, {used[due - 2]:g} the one before"
    return Reached(said, bed.complaints)


def _wait(bed: Bed, process: subprocess.Popen[bytes], number: int, what: str) -> bool:
    def there() -> bool:
        return bed.reached(number, what) or process.poll() is not None

    return eventually(there, _LIMIT) and process.poll() is None


def _used(run: Path, which: str) -> list[float]:
    """What the run had used after each iteration, by the bytes that reached it."""
    journal = Journal(run)
    running = account.Sum()
    found = []
    for number in journal.iterations():
        for usage in account.spent(journal.raw(number)):
            running = running.plus(usage)
        found.append(float(running.tokens if which == "tokens" else running.cost))
    return found
