"""`python -m bench [--quick] [--only TEXT] [a b c d e f g h i]`: prints the table."""

from __future__ import annotations

import argparse
import sys
from functools import partial

from bench import adapters, drivers, inspection, iterations, latency, memory, scripts, startup, throughput
from bench.table import machine, render

_ALL = {
    "a": throughput.measure,
    "b": iterations.measure,
    "c": startup.measure,
    "d": memory.measure,
    "e": latency.measure,
    "f": adapters.measure,
    "g": scripts.measure,
    "h": drivers.measure,
    "i": inspection.measure,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Compares ralph with simple tools.")
    parser.add_argument("which", nargs="*", metavar="a…i", help="only these [default: all]")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, in well under a minute")
    parser.add_argument("--only", default="", metavar="TEXT", help="for f: only rows whose names contain this")
    options = parser.parse_args()
    unknown = [name for name in options.which if name not in _ALL]
    if unknown:
        parser.error(f"unknown benchmark {', '.join(unknown)}; choose from {', '.join(_ALL)}")
    rows = []
    for name in options.which or _ALL:
        sys.stderr.write(f"measuring {name} …\n")
        measure = partial(adapters.measure, only=options.only) if name == "f" else _ALL[name]
        rows += measure(quick=options.quick)
    print(render(rows))
    print(f"\n{machine()}{'; quick: smaller sizes than the aims are for' if options.quick else ''}")


if __name__ == "__main__":
    main()
