"""The coverage-guided engine: atheris, in a process of its own for each target, as it ends the one that it runs in.

`python -m fuzz.guided NAME LIBFUZZER-OPTION…` is that process.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from fuzz.result import Result

if TYPE_CHECKING:
    from pathlib import Path

    from fuzz.targets import Target

_STATE = re.compile(r"cov: (\d+).*? corp: (\d+)")
_COUNT = re.compile(r"^(?:#|stat::number_of_executed_units: )(\d+)", re.MULTILINE)
_RAISED = re.compile(r"^(?:[\w.]*(?:Error|Exception|Exit|Interrupt)\b.*|==\d+== ?ERROR: .*|ALARM: .*)$", re.MULTILINE)
#: One input that takes longer is a crash: a loop that stands still for an hour is one of the things to find.
_LONGEST = 20
_GRACE = 60
_LATE = {
    "config": "ralph.agents.registry",
    "provider": "ralph.transcripts.claude",
    "ralphex": "ralph.dialects.provider.launcher",
    "ralphrc": "ralph.dialects.driver.launcher",
}


def is_there() -> bool:
    return importlib.util.find_spec("atheris") is not None


def run(target: Target, seconds: int, folder: Path) -> Result:
    """The search goes on from the corpus that an earlier one left in the folder."""
    from fuzz.seeds import seeds, tokens

    corpus, begin, found = folder / "corpus", folder / "seeds", folder / "found"
    for place in (corpus, begin, found):
        place.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(seeds(target.name)):
        (begin / f"{number:03d}").write_bytes(data)
    words = folder / "words.dict"
    words.write_text("".join(f'"{_quoted(word)}"\n' for word in tokens(target.name)))
    before = set(found.iterdir())
    began = time.monotonic()
    child = subprocess.run(
        [
            sys.executable, "-m", "fuzz.guided", target.name,
            f"-max_total_time={seconds}", f"-timeout={_LONGEST}", "-rss_limit_mb=1024", "-max_len=8192",
            "-print_final_stats=1", f"-dict={words}", f"-artifact_prefix={found}/", str(corpus), str(begin),
        ],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=seconds + _GRACE, check=False,
    )  # fmt: skip
    told = child.stderr.decode("utf-8", "replace")
    new = sorted(set(found.iterdir()) - before)
    states = _STATE.findall(told)
    reach = "{} branches, {} inputs".format(*states[-1]) if states else ""
    executions = max((int(number) for number in _COUNT.findall(told)), default=0)
    raised = sorted(_RAISED.findall(told), key=lambda line: line.startswith("=="))  # the exception, if it was one
    if child.returncode and not new:
        raise RuntimeError(f"the engine itself failed on {target.name}:\n{told[-2000:]}")
    crashes = [path.read_bytes() for path in new]
    return Result(
        target.name,
        "atheris",
        executions,
        time.monotonic() - began,
        reach,
        crashes,
        raised[0].strip() if raised else "",
    )


def _quoted(word: bytes) -> str:
    return "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\x{b:02x}" for b in word)


def _child(name: str, options: list[str]) -> None:
    import atheris  # type: ignore[import-untyped,import-not-found,unused-ignore]

    with atheris.instrument_imports(include=["ralph"], enable_loader_override=False):
        from fuzz.targets import TARGETS

        _preload(name)
    check = TARGETS[name].check
    atheris.Setup([sys.argv[0], *options], check)
    atheris.Fuzz()


def _preload(name: str) -> None:
    """What is imported late would go unseen."""
    if name in _LATE:
        importlib.import_module(_LATE[name])
    elif importlib.util.find_spec(f"ralph.transcripts.{name}"):
        importlib.import_module(f"ralph.transcripts.{name}")


if __name__ == "__main__":
    _child(sys.argv[1], sys.argv[2:])
