"""Looking at a script or a configuration in bash, without running the agent."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ralph.errors import UsageError
from ralph.system import files
from ralph.system.programs import which

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

HERE = Path(__file__).parent
REQUIRED = ("agent_invoke", "agent_extract_response", "agent_format_display")
#: A file that only sets variables and defines functions needs milliseconds.
_TIMEOUT = 10.0
_ASSIGNMENT = re.compile(r"\s*(?:export\s+|readonly\s+|declare\s+(?:-\w+\s+)*)?([A-Za-z_]\w*)=")


class Place(msgspec.Struct, frozen=True):
    """Where a script stands, in the terms of its convention."""

    #: RALPH_DIR: what holds `agents/` and `config`
    root: Path
    workdir: Path
    mode: str = "build"
    config: Path | None = None

    @property
    def home(self) -> str:
        """RALPH_HOME: the same, seen from the project."""
        return os.path.relpath(self.root, self.workdir)


class Answer(msgspec.Struct, frozen=True):
    values: dict[str, str]
    functions: frozenset[str]
    installed: bool


def bash() -> str:
    program = which("bash")
    if program is None:
        raise UsageError("agent scripts are bash files, and there is no bash in PATH")
    return program


def assigned(path: Path) -> dict[str, int]:
    """The variables that a bash file sets at the start of a line, with the last line that does."""
    lines = files.read_text(path).splitlines()
    return {found.group(1): number for number, line in enumerate(lines, 1) if (found := _ASSIGNMENT.match(line))}


def look(place: Place, script: Path | None, names: Iterable[str], environ: Mapping[str, str]) -> Answer:
    """What the files set and define. UsageError, with what bash said, if they cannot be sourced."""
    shown = script or place.config
    argv = [
        bash(),
        str(HERE / "probe.sh"),
        str(place.config or ""),
        str(script or ""),
        script.stem if script else "",
        str(place.root),
        place.home,
        place.mode,
        *names,
    ]
    late = f"{shown} did not come to its end within {_TIMEOUT:g} s when it was sourced"
    out, err = _run(argv, place.workdir, environ, late)
    parts = out.split("\0")
    pairs = dict(zip(parts[::2], parts[1::2], strict=False))
    if int(pairs.get("bash") or 0) < 4:
        raise UsageError(f"agent scripts need bash 4 or newer, and {argv[0]} is older: install a newer one in PATH")
    if "done" not in pairs:
        said = "\n".join(f"  {line}" for line in err.strip().splitlines()[-5:])
        raise UsageError(f"{pairs.get('ended') or shown} cannot be sourced:\n{said or '  it ended the shell'}")
    return Answer(
        {name[1:]: value for name, value in pairs.items() if name.startswith("=")},
        frozenset(name for name in REQUIRED if name in pairs),
        "installed" in pairs,
    )


def _run(argv: list[str], cwd: Path, environ: Mapping[str, str], late: str) -> tuple[str, str]:
    """In a process group of its own, so that nothing is left of what does not end."""
    process = subprocess.Popen(
        argv,
        cwd=cwd,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=_TIMEOUT)
    except subprocess.TimeoutExpired:
        raise UsageError(late) from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
    return out.decode("utf-8", "surrogateescape"), err.decode("utf-8", "replace")
