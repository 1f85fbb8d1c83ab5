"""`python -m faults [--short] [NAME…]`: injects faults and prints a table. Exits with 1 if a row is not as expected."""

from __future__ import annotations

import argparse
import os
import sys
import time

from faults.case import every
from faults.matrix import run
from faults.table import render, summary


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m faults", description="Injects faults into the real command.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="only faults with this text in their name [default: all]"
    )
    parser.add_argument("--short", action="store_true", help="smaller sizes, no real CLIs: about a minute")
    parser.add_argument("--list", action="store_true", help="list the faults and what is expected of each")
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1), help="how many to run at a time")
    options = parser.parse_args()
    chosen = [
        one
        for one in every().values()
        if (one.short or not options.short) and (not options.names or any(n in one.name for n in options.names))
    ]
    if not chosen:
        parser.error("no fault has such a name; --list shows them all")
    if options.list:
        for one in chosen:
            print(f"{one.name}: {one.expectation(short=options.short)}")
        return 0
    started = time.monotonic()
    rows = run(chosen, short=options.short, jobs=options.jobs)
    print(render(rows))
    print(f"\n{summary(rows, time.monotonic() - started)}")
    return 1 if any(row.good is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
