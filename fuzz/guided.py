"""The coverage-guided engine: atheris, in a separate process for each target, because it ends its process.

`python -m fuzz.guided NAME FOLDER LIBFUZZER-OPTION…` is that process. It ends without cleaning up, so its parent
creates and removes the folder that it writes to.
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
#: Our own process reports what a target raised; the engine reports hangs and lack of memory.
_RAISED = re.compile(r"^fuzz raised (.*)$", re.MULTILINE)
_STOPPED = re.compile(r"^(?:==\d+== ?ERROR: .*|ALARM: .*)$", re.MULTILINE)
#: In seconds. An input that takes longer is a crash.
_LONGEST = 20
_GRACE = 60
_LATE = {
    "config": "ralph.agents.registry",
    "provider": "ralph.agents.claude.adapter",
    "ralphex": "ralph.dialects.provider.launcher",
    "ralphrc": "ralph.dialects.driver.launcher",
}


def is_installed() -> bool:
    return importlib.util.find_spec("atheris") is not None


def run(target: Target, seconds: int, folder: Path) -> Result:
    """Searches, starting from the corpus that an earlier search left in the folder."""
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
    output = child.stdout.decode("utf-8", "replace")
    # A slow input is no crash: on a busy machine every input is slow.
    new = sorted(path for path in set(found.iterdir()) - before if not path.name.startswith("slow-unit"))
    states = _STATE.findall(output)
    reach = "{} branches, {} inputs".format(*states[-1]) if states else ""
    executions = max((int(number) for number in _COUNT.findall(output)), default=0)
    raised = _RAISED.findall(output)
    stopped = _STOPPED.findall(output)
    if child.returncode and not new:
        raise RuntimeError(f"the engine itself failed on {target.name}:\n{output[-2000:]}")
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
    atheris.Setup([sys.argv[0], *options], reporting(TARGETS[name].check))
    atheris.Fuzz()


def reporting(check: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """The check, which also prints what it raised: the engine reports only that it ended."""

    def reported(data: bytes) -> None:
        try:
            check(data)
        except BaseException as error:
            last = "".join(traceback.format_exception_only(error)).strip().replace("\n", " ⏎ ")
            sys.stderr.write(f"\nfuzz raised {last}\n")
            raise

    return reported


def _preload(name: str) -> None:
    """Imports what the target would import later, without coverage."""
    from ralph.agents import adapters

    if name in _LATE:
        importlib.import_module(_LATE[name])
    elif name in adapters.names():
        adapters.create(name)


if __name__ == "__main__":
    _child(sys.argv[1], sys.argv[2], sys.argv[3:])
