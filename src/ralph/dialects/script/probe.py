"""Sources a script or a configuration in bash to inspect it, without running the agent."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ralph.errors import UsageError
from ralph.system import files, short
from ralph.system.programs import which

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

HERE = Path(__file__).parent
REQUIRED = ("agent_invoke", "agent_extract_response", "agent_format_display")
#: A file that only sets variables and defines functions needs milliseconds.
_TIMEOUT = 10.0
_MAX_OUTPUT = 64 << 20
_ASSIGNMENT = re.compile(r"\s*(?:export\s+|readonly\s+|declare\s+(?:-\w+\s+)*)?([A-Za-z_]\w*)=")


class Place(msgspec.Struct, frozen=True):
    """The directories and the mode that a script runs with."""

    #: RALPH_DIR: the folder that contains `agents/` and `config`
    root: Path
    workdir: Path
    mode: str = "build"
    config: Path | None = None

    @property
    def home(self) -> str:
        """RALPH_HOME: the same folder, relative to the project."""
        return os.path.relpath(self.root, self.workdir)


class ProbeResult(msgspec.Struct, frozen=True):
    values: dict[str, str]
    functions: frozenset[str]
    #: whether AGENT_CLI is in PATH
    installed: bool


def bash() -> str:
    program = which("bash")
    if program is None:
        raise UsageError("agent scripts need bash, which is not in PATH")
    return program


def assigned(path: Path) -> dict[str, int]:
    """The variables that a bash file sets at the start of a line, each with the last such line."""
    lines = files.read_text(path).splitlines()
    return {found.group(1): number for number, line in enumerate(lines, 1) if (found := _ASSIGNMENT.match(line))}


def probe(place: Place, script: Path | None, names: Iterable[str], environ: Mapping[str, str]) -> ProbeResult:
    """What the files set and define. Raises UsageError with bash's own messages if they cannot be sourced."""
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
    out, err = _run(argv, place.workdir, environ, f"sourcing {shown} took longer than {_TIMEOUT:g} s")
    parts = out.split("\0")
    pairs = dict(zip(parts[::2], parts[1::2], strict=False))
    if int(pairs.get("bash") or 0) < 4:
        raise UsageError(f"agent scripts need bash 4 or later, but {argv[0]} is older: put a newer bash in PATH")
    if "done" not in pairs:
        errors = "\n".join(f"  {line}" for line in err.strip().splitlines()[-5:])
        raise UsageError(f"{pairs.get('failed') or shown} cannot be sourced:\n{errors or '  it exited the shell'}")
    return ProbeResult(
        {name[1:]: value for name, value in pairs.items() if name.startswith("=")},
        frozenset(name for name in REQUIRED if name in pairs),
        "installed" in pairs,
    )


def _run(argv: list[str], cwd: Path, environ: Mapping[str, str], too_long: str) -> tuple[str, str]:
    done = short.run(argv, timeout=_TIMEOUT, env=environ, cwd=cwd, limit=_MAX_OUTPUT)
    if done.status is None:
        raise UsageError(too_long)
    return done.stdout.decode("utf-8", "surrogateescape"), done.stderr.decode("utf-8", "replace")
