"""Uses an agent that ralph knows itself, where a project names a driver but has no file for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ralph.agents import detect, registry
from ralph.dialects.driver.config import BY_DEFAULT
from ralph.dialects.driver.locate import FOLDERS, all_drivers
from ralph.dialects.driver.variables import configured
from ralph.errors import UsageError, nearest
from ralph.launching.known import launch_for, spec_of
from ralph.system.programs import which

if TYPE_CHECKING:
    from pathlib import Path

    from ralph.agents.spec import AgentSpec
    from ralph.config.layers import Resolved
    from ralph.dialects.driver.ralphrc import RcFile
    from ralph.launching.launch import Launch
    from ralph.trust.approval import Trust


def launch_builtin(resolved: Resolved, workdir: Path, name: str, file: RcFile, trust: Trust) -> Launch:
    """Starts ralph's own agent of this name. Most projects of this convention have no driver files."""
    resolved = resolved.warn(*registry.warnings())
    command = configured(resolved, file, "CLAUDE_CODE_CMD")
    if resolved.origins["driver"] == BY_DEFAULT and command in ("", "claude"):
        enabled = {name: a.enabled for name, a in resolved.settings.adapters.items()}
        found = detect.auto(enabled, resolved.settings.agent_priority, environ=resolved.environ)
    else:
        spec = _spec(resolved, workdir, name, trust)
        found, warnings = _installed(spec, command, resolved.environ)
        resolved = resolved.warn(*warnings)
    resolved = resolved.warn(*_only_for_drivers(resolved, found.spec, file))
    launch = launch_for(_with_model(resolved, found.spec, file), workdir, found)
    return msgspec.structs.replace(launch, dialect=f"driver (no driver file, so ralph's own {launch.agent})")


def _spec(resolved: Resolved, workdir: Path, name: str, trust: Trust) -> AgentSpec:
    try:
        return spec_of(name, workdir, trust)
    except UsageError:
        drivers = [path.stem for path in all_drivers(workdir)]
        hint = nearest(name, [*drivers, *registry.names()])
        tried = " nor ".join(f"{folder}/{name}.sh" for folder in FOLDERS)
        available = f"\n  Drivers of this project: {', '.join(drivers)}" if drivers else ""
        raise UsageError(
            f"there is no driver '{name}' ({resolved.origins['driver']}){hint}: neither {tried} exists, "
            f"and ralph has no agent of this name{available}"
        ) from None


def _installed(spec: AgentSpec, command: str, environ: dict[str, str]) -> tuple[detect.Installed, list[str]]:
    """The agent's program, and warnings. CLAUDE_CODE_CMD (`command`) can replace the program of Claude only."""
    if not command or spec.name != "claude":
        return detect.explicit(spec, environ), []
    program = which(command)
    if program is None:
        ignored = f"CLAUDE_CODE_CMD='{command}' is not a single program; it is ignored"
        return detect.explicit(spec, environ), [] if command == "claude" else [ignored]
    return detect.Installed(spec, program, detect.probe(spec, program, environ)[1]), []


def _only_for_drivers(resolved: Resolved, spec: AgentSpec, file: RcFile) -> list[str]:
    """Warnings about keys that only a driver would obey."""
    mode = configured(resolved, file, "CLAUDE_PERMISSION_MODE")
    if mode in ("", "bypassPermissions"):
        return []
    runs = f"{spec.title} runs without asking for permission"
    return [f"CLAUDE_PERMISSION_MODE={mode} is ignored, because there is no driver file: {runs}"]


def _with_model(resolved: Resolved, spec: AgentSpec, file: RcFile) -> Resolved:
    """Applies CLAUDE_MODEL, which means nothing to agents other than Claude."""
    model = configured(resolved, file, "CLAUDE_MODEL")
    if spec.name != "claude" or not model or resolved.settings.model:
        return resolved
    settings = msgspec.structs.replace(resolved.settings, model=model)
    origins = resolved.origins | {"model": "CLAUDE_MODEL"}
    return msgspec.structs.replace(resolved, settings=settings, origins=origins)
