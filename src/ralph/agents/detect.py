"""Finds installed agents and their versions."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import msgspec

from ralph.agents import registry
from ralph.agents.spec import PYTHON, VersionProbe
from ralph.errors import UsageError
from ralph.system.programs import search_path, which

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ralph.agents.spec import AgentSpec

#: On a busy machine, Node programs need a second to print their version.
PROBE_TIMEOUT = 10.0
#: Much more than any help text.
_MAX_OUTPUT = 16 << 20


class Installed(msgspec.Struct, frozen=True):
    """An installed agent."""

    spec: AgentSpec
    program: str
    version: str | None


def locate(spec: AgentSpec, path: str | None = None) -> str | None:
    """Return the agent's program if it is in PATH. For an agent that is part of ralph, return ralph's Python."""
    programs = (registry.python() if name == PYTHON else which(name, path) for name in spec.commands)
    return next(filter(None, programs), None)


def probe(spec: AgentSpec, program: str, environ: Mapping[str, str] | None = None) -> tuple[bool, str | None]:
    """Run the version command. Return whether it succeeded, and the version if it can be read."""
    if not spec.version.args:
        return True, None
    code, text = _output(program, spec.version.args, environ)
    return code == 0, _version(spec.version.pattern, text)


def _version(pattern: str, text: str) -> str | None:
    if pattern == VersionProbe().pattern:
        found = re.search(pattern, text)
        return found.group(1) if found else None
    from ralph.system.patterns import first_group  # late: few agents have a pattern of their own

    return first_group(pattern, text)


def help_text(program: str, args: tuple[str, ...], environ: Mapping[str, str] | None = None) -> str:
    """Return the program's help. Some programs print it on stderr."""
    return _output(program, args, environ)[1]


#: Outputs by command, because some programs take a second. A program that was replaced runs again.
_outputs: dict[tuple[str, tuple[str, ...], int], tuple[int | None, str]] = {}


def _output(program: str, args: tuple[str, ...], environ: Mapping[str, str] | None) -> tuple[int | None, str]:
    command = (program, args, _modified(program))
    if command not in _outputs:
        path = (os.environ if environ is None else environ).get("PATH")  # `env node` must not run ./node
        environ = {**(os.environ if environ is None else environ), "PATH": search_path(path)}
        _outputs[command] = _run(program, args, environ)
    return _outputs[command]


def _run(program: str, args: tuple[str, ...], environ: Mapping[str, str] | None) -> tuple[int | None, str]:
    from ralph.system import short

    try:
        done = short.run([program, *args], timeout=PROBE_TIMEOUT, env=environ, limit=_MAX_OUTPUT)
    except OSError:
        return None, ""
    if done.status is None:
        return None, ""
    return done.status, (done.stdout + b"\n" + done.stderr).decode("utf-8", "replace")


def _modified(program: str) -> int:
    try:
        return os.stat(program).st_mtime_ns  # noqa: PTH116 - the name may be a bare one
    except OSError:
        return 0


def explicit(spec: AgentSpec, environ: Mapping[str, str] | None = None, name: str = "") -> Installed:
    """Return the requested agent. Raises UsageError, with `name` if that is an alias, if it is not installed."""
    program = locate(spec)
    if program is None:
        commands = " or ".join(f"'{command}'" for command in spec.commands)
        raise UsageError(
            f"agent '{name or spec.name}' ({spec.title}) was asked for, but {commands} is not in PATH.\n"
            f"  To install it: {_how_to_install(spec)}"
        )
    return Installed(spec, program, probe(spec, program, environ)[1])


def auto(
    enabled: Mapping[str, bool],
    priority: Iterable[str] = (),
    find: Callable[[AgentSpec], str | None] = locate,
    environ: Mapping[str, str] | None = None,
) -> Installed:
    """Return the first agent that is enabled, installed and works."""
    looked = []
    for spec in _order(priority):
        if not enabled.get(spec.name, True):
            looked.append((spec, "disabled in the configuration"))
            continue
        program = find(spec)
        if program is None:
            looked.append((spec, ""))
            continue
        works, version = probe(spec, program, environ)
        if works:
            return Installed(spec, program, version)
        looked.append((spec, f"{program} {' '.join(spec.version.args)} failed"))
    lines = [f"  {s.name:<10} {_how_to_install(s)}" + (f" ({why})" if why else "") for s, why in looked]
    raise UsageError(
        "no agent was found in PATH. Install one of these:\n"
        + "\n".join(lines)
        + "\nOr use any other program: ralph run --agent-cmd 'COMMAND'. To see how ralph works first: ralph demo"
    )


def _order(priority: Iterable[str]) -> list[AgentSpec]:
    named = [registry.get(name) for name in priority]
    if named:
        return named
    return sorted((s for s in registry.all_specs() if s.detect is not None), key=lambda s: (s.detect or 0, s.name))


def _how_to_install(spec: AgentSpec) -> str:
    return " · ".join(filter(None, (spec.install, spec.link)))
