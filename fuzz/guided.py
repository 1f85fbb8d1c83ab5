"""The coverage-guided engine: atheris, in a process of its own for each target, as it ends the one that it runs in.

`python -m fuzz.guided NAME FOLDER LIBFUZZER-OPTION…` is that process. It ends without cleaning up: the folder, where it
may write, is made and removed by the one that started it.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import subprocess
import sys
import tempfile
import time
import traceback
from typing import TYPE_CHECKING

from fuzz.result import Result

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fuzz.targets import Target

_STATE = re.compile(r"cov: (\d+).*? corp: (\d+)")
_COUNT = re.compile(r"^(?:#|stat::number_of_executed_units: )(\d+)", re.MULTILINE)
#: What a target raised, told by our own process; the engine tells of hangs and of memory.
_RAISED = re.compile(r"^fuzz raised (.*)$", re.MULTILINE)
_STOPPED = re.compile(r"^(?:==\d+== ?ERROR: .*|ALARM: .*)$", re.MULTILINE)
#: One input that takes longer is a crash: a loop that stands still for an hour is one of the things to find.
_LONGEST = 20
_GRACE = 60
_LATE = {
    "config": "ralph.agents.registry",
    "provider": "ralph.agents.claude.adapter",
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
    with tempfile.TemporaryDirectory(prefix="work-", dir=folder) as work:
        child = subprocess.run(
            [
                sys.executable, "-m", "fuzz.guided", target.name, work,
                f"-max_total_time={seconds}", f"-timeout={_LONGEST}", "-rss_limit_mb=1024", "-max_len=8192",
                "-print_final_stats=1", f"-dict={words}", f"-artifact_prefix={found}/", str(corpus), str(begin),
            ],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds + _GRACE, check=False,
        )  # fmt: skip
    told = child.stdout.decode("utf-8", "replace")
    # A slow one is no crash: on a busy machine any is.
    new = sorted(path for path in set(found.iterdir()) - before if not path.name.startswith("slow-unit"))
    states = _STATE.findall(told)
    reach = "{} branches, {} inputs".format(*states[-1]) if states else ""
    executions = max((int(number) for number in _COUNT.findall(told)), default=0)
    raised = _RAISED.findall(told)
    stopped = _STOPPED.findall(told)
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
        raised[-1] if raised else stopped[0] if stopped else "",
        bool(raised),
    )


def _quoted(word: bytes) -> str:
    return "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\x{b:02x}" for b in word)


def _child(name: str, work: str, options: list[str]) -> None:
    import atheris  # type: ignore[import-untyped,import-not-found,unused-ignore]

    with atheris.instrument_imports(include=["ralph"], enable_loader_override=False):
        from fuzz.files import work_in
        from fuzz.targets import TARGETS

        _preload(name)
    work_in(work)
    atheris.Setup([sys.argv[0], *options], telling(TARGETS[name].check))
    atheris.Fuzz()


def telling(check: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """The check, which says on a line of its own what it raised: the engine only says that it ended."""

    def told(data: bytes) -> None:
        try:
            check(data)
        except BaseException as error:
            last = "".join(traceback.format_exception_only(error)).strip().replace("\n", " ⏎ ")
            sys.stderr.write(f"\nfuzz raised {last}\n")
            raise

    return told


def _preload(name: str) -> None:
    """What is imported late would go unseen."""
    from ralph.agents import adapters

    if name in _LATE:
        importlib.import_module(_LATE[name])
    elif name in adapters.names():
        adapters.create(name)


if __name__ == "__main__":
    _child(sys.argv[1], sys.argv[2], sys.argv[3:])
