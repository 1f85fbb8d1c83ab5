"""`python -m faults.one NAME short|full`: injects one fault and prints its row as JSON.

It is a process of its own, so that the suite finds everything that the fault leaves behind and can end a hang.
"""

from __future__ import annotations

import signal
import sys
import time
import traceback

import msgspec

from faults import tree
from faults.case import Fault, NotPossibleError, every
from faults.place import HangError, Place
from faults.table import Row

#: How long ralph's keeper process may take to end what ralph left running.
_SETTLE = 12.0


def make(one: Fault, *, short: bool) -> Row:
    tree.adopt_orphans()
    started = time.monotonic()
    expected = one.expectation(short=short)
    place = Place(short=short)
    left: dict[int, str] = {}
    try:
        try:
            one.make(place)
            left = tree.settle(_SETTLE)
        except HangError as hang:
            return Row(one.name, expected, f"hang: {hang}", False, place.lost, len(tree.below()), _since(started))
        except NotPossibleError as why:
            return Row(one.name, expected, f"not possible here: {why}", None, None, 0, _since(started))
        finally:
            tree.end_all()
        good = place.seen == expected and not place.lost and not left
        names = "".join(f"; left: {name[:60]}" for name in left.values())
        return Row(one.name, expected, place.seen + names, good, place.lost, len(left), _since(started))
    finally:
        place.remove()


def _since(started: float) -> float:
    return time.monotonic() - started


def restore_default_signals() -> None:
    """In a background job SIGINT is ignored, under nohup SIGHUP is, and ralph would inherit that and obey neither.

    Only this process and its children change: the suite itself keeps ignoring what it ignored.
    """
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def main() -> None:
    restore_default_signals()
    name, form = sys.argv[1:]
    try:
        row = make(every()[name], short=form == "short")
    except Exception:  # noqa: BLE001 - a bug in the suite becomes a row as well
        row = Row(name, "", f"the suite failed: {traceback.format_exc()[-600:]}", False, None, 0, 0.0)
    sys.stdout.buffer.write(msgspec.json.encode(row))


if __name__ == "__main__":
    main()
