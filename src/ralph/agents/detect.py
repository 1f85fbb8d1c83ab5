"""What is installed, and in which version."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import msgspec

from ralph.agents import registry
from ralph.agents.spec import PYTHON
from ralph.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ralph.agents.spec import AgentSpec

#: Node programs take a second to say their version on a busy machine.
PROBE_TIMEOUT = 10.0


class Installed(msgspec.Struct, frozen=True):
    """An agent that is there."""

    spec: AgentSpec
    program: str
    version: str | None


def locate(spec: AgentSpec, path: str | None = None) -> str | None:
    """The agent's program, if it is in PATH; of one that is part of ralph, what runs ralph."""
    return next((found for c in spec.commands if (found := _program(c, path))), None)


def _program(command: str, path: str | None) -> str | None:
    import shutil

    return registry.python() if command == PYTHON else shutil.which(command, path=path)


def probe(spec: AgentSpec, program: str, environ: Mapping[str, str] | None = None) -> tuple[bool, str | None]:
    """Whether it answers when asked for its version, and the version if it can be read."""
    if not spec.version.args:
        return True, None
    code, text = _ask(program, spec.version.args, environ)
    found = re.search(spec.version.pattern, text)
    return code == 0, found.group(1) if found else None


def help_text(program: str, args: tuple[str, ...], environ: Mapping[str, str] | None = None) -> str:
    """What the program says about its flags; some say it on stderr."""
    return _ask(program, args, environ)[1]


#: Answers by question; some programs take a second for one, and a program that was replaced is asked again.
_answers: dict[tuple[str, tuple[str, ...], int], tuple[int | None, str]] = {}


def _ask(program: str, args: tuple[str, ...], environ: Mapping[str, str] | None) -> tuple[int | None, str]:
    question = (program, args, _modified(program))
    if question not in _answers:
        _answers[question] = _run(program, args, environ)
    return _answers[question]


def _run(program: str, args: tuple[str, ...], environ: Mapping[str, str] | None) -> tuple[int | None, str]:
    import subprocess

    try:
        done = subprocess.run(
            [program, *args],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environ,
            timeout=PROBE_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None, ""
    return done.returncode, (done.stdout + b"\n" + done.stderr).decode("utf-8", "replace")


def _modified(program: str) -> int:
    try:
        return os.stat(program).st_mtime_ns  # noqa: PTH116 - the name may be a bare one
    except OSError:
        return 0


def explicit(spec: AgentSpec, environ: Mapping[str, str] | None = None, name: str = "") -> Installed:
    """The agent that was asked for, as `name` if that is an alias; it must be installed."""
    program = locate(spec)
    if program is None:
        raise UsageError(
            f"agent '{name or spec.name}' ({spec.title}) was asked for, but {_either(spec.commands)} is not in PATH.\n"
            f"  To get it: {_how_to_get(spec)}"
        )
    return Installed(spec, program, probe(spec, program, environ)[1])


def auto(
    enabled: Mapping[str, bool],
    priority: Iterable[str] = (),
    find: Callable[[AgentSpec], str | None] = locate,
    environ: Mapping[str, str] | None = None,
) -> Installed:
    """The first agent, in order, that is enabled, installed and answers."""
    order = _order(priority)
    looked = []
    for spec in order:
        if not enabled.get(spec.name, True):
            looked.append((spec, "turned off in the configuration"))
            continue
        program = find(spec)
        if program is None:
            looked.append((spec, ""))
            continue
        works, version = probe(spec, program, environ)
        if works:
            return Installed(spec, program, version)
        looked.append((spec, f"{program} does not answer to {' '.join(spec.version.args)}"))
    lines = [f"  {s.name:<10} {_how_to_get(s)}" + (f" ({why})" if why else "") for s, why in looked]
    raise UsageError(
        "no agent was found in PATH. These were looked for; install one of them:\n"
        + "\n".join(lines)
        + "\nOr name any other program: ralph run --agent-cmd 'COMMAND'. To see how it works first: ralph demo"
    )


def _order(priority: Iterable[str]) -> list[AgentSpec]:
    named = [registry.get(name) for name in priority]
    if named:
        return named
    return sorted((s for s in registry.all_specs() if s.detect is not None), key=lambda s: (s.detect or 0, s.name))


def _how_to_get(spec: AgentSpec) -> str:
    return " · ".join(filter(None, (spec.install, spec.link)))


def _either(commands: tuple[str, ...]) -> str:
    return " or ".join(f"'{c}'" for c in commands)
