"""`python -m fuzz [--seconds N] [--engine E] [--reproduce FILE] [TARGET…]`: searches, and prints a table."""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path

from fuzz import guided, properties
from fuzz.result import Result, render
from fuzz.shrink import shrink
from fuzz.targets import TARGETS, Target

_FOLDER = Path(".build/fuzz")
#: The share of a target's time for the property tests, if both engines are installed.
_PROPERTIES = 0.2


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Searches for input that breaks a promise.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"only these [default: all]: {' '.join(TARGETS)}")
    parser.add_argument("--seconds", type=float, default=10, help="for each target [default: 10]")
    parser.add_argument("--engine", choices=("both", "properties", "atheris"), default="both")
    parser.add_argument("--reproduce", type=Path, metavar="FILE", help="check only this input, for the named target")
    options = parser.parse_args()
    unknown = [name for name in options.targets if name not in TARGETS]
    if unknown:
        parser.error(f"unknown target {', '.join(unknown)}; choose from {', '.join(TARGETS)}")
    chosen = [TARGETS[name] for name in options.targets or TARGETS]
    if options.reproduce:
        if len(chosen) != 1:
            parser.error("name exactly one target for the input")
        chosen[0].check(options.reproduce.read_bytes())
        print(f"{options.reproduce}: it passes now")
        return 0
    return _search(chosen, options.seconds, _engines(options.engine))


def _engines(wanted: str) -> list[str]:
    if wanted != "properties" and not guided.is_installed():
        print("atheris is not installed (it has wheels for CPython on Linux x86_64): running the property tests only")
        return ["properties"]
    return ["properties", "atheris"] if wanted == "both" else [wanted]


def _search(chosen: list[Target], seconds: float, engines: list[str]) -> int:
    results: list[Result] = []
    for target in chosen:
        for engine in engines:
            share = _PROPERTIES if len(engines) > 1 else 1.0
            if engine == "properties":
                result = properties.run(target, seconds * share)
            else:
                left = round(seconds * (1 - share) if len(engines) > 1 else seconds)
                result = guided.run(target, max(1, left), _FOLDER / target.name)
            results.append(result)
            _report(target, result)
    print(render(results))
    return 1 if any(result.crashes for result in results) else 0


def _report(target: Target, result: Result) -> None:
    rate = result.executions / max(result.seconds, 0.001)
    sys.stderr.write(f"{target.name}: {result.engine}, {result.executions:,} executions, {rate:,.0f} per second\n")
    for data in result.crashes:
        data = shrink(target.check, data) if result.raised else data
        path = _FOLDER / target.name / f"crash-{hashlib.sha256(data).hexdigest()[:12]}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        print(f"{target.name}: {result.error[:1500]}\n    make fuzz REPRODUCE={path} TARGETS={target.name}")


if __name__ == "__main__":
    sys.exit(main())
