"""Builds the launch for a project of the driver convention."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ralph.agents import adapters as transcripts
from ralph.agents.spec import Invocation
from ralph.config.settings import Signals
from ralph.dialects.driver import jq as filters
from ralph.dialects.driver.builtin import launch_builtin
from ralph.dialects.driver.config import BY_DEFAULT, layer, read
from ralph.dialects.driver.host import Description, Host
from ralph.dialects.driver.launcher import DriverLauncher
from ralph.dialects.driver.locate import all_drivers, locate
from ralph.dialects.driver.variables import exported, output_format, variables
from ralph.errors import UsageError, nearest
from ralph.launching.launch import Launch
from ralph.system.programs import which

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ralph.config.layers import Resolved
    from ralph.dialects.detect import Found
    from ralph.trust.approval import Trust


class Transcript(msgspec.Struct, frozen=True):
    """How the agent's output is read."""

    name: str
    why: str
    #: the jq program, if the driver's own filter reads the output
    jq: str | None = None
    warnings: tuple[str, ...] = ()


def launch(resolved: Resolved, workdir: Path, trust: Trust) -> Launch:
    """Starts the agent through the project's driver, or, if there is no such driver, ralph's own agent of that name."""
    name, origin = resolved.settings.driver or "", resolved.origins["driver"]
    path = locate(name, workdir, origin)
    shown, file = read(workdir, resolved.environ)
    resolved = _with_status_signals(resolved)
    if path is None:
        return launch_builtin(resolved, workdir, name, file, trust)
    given = variables(resolved, shown, file)
    host = Host(path, workdir, given, resolved.environ)
    description = host.describe()
    program = _program(description, workdir, path)
    resolved = _check(resolved, description)
    transcript = _transcript(resolved, description)
    resolved = resolved.warn(*transcript.warnings)
    if description.live and given["CLAUDE_OUTPUT_FORMAT"] != (form := output_format(resolved, file)):
        resolved = resolved.warn(f"CLAUDE_OUTPUT_FORMAT={form} is ignored: live output has to be json")
    plan_file = resolved.settings.fix_plan
    return Launch(
        resolved,
        workdir,
        description.name,
        description.title or description.name,
        None,
        [program],
        Invocation(),
        resolved.environ | exported(file),
        transcript.name,
        transcript.why,
        launcher=DriverLauncher(
            host,
            description,
            env={},
            plan=workdir / plan_file if plan_file else None,
            context=resolved.settings.continue_session,
            jq=transcript.jq,
        ),
        dialect=f"driver ({_shown(path, workdir)})",
    )


def executables(found: Found, workdir: Path, environ: Mapping[str, str]) -> list[Path]:
    """The files of the repository that a run would execute: the driver, and the scripts beside it."""
    name = layer(found, workdir, environ).values["driver"]
    path = locate(name, workdir, str(found.path))
    return [] if path is None else [path, *(p for p in all_drivers(workdir) if p != path and p.parent == path.parent)]


def _with_status_signals(resolved: Resolved) -> Resolved:
    """In this convention, agents report completion in a status block unless configured otherwise."""
    if resolved.settings.signals is not Signals.AUTO:
        return resolved
    origins = resolved.origins | {"signals": BY_DEFAULT}
    settings = msgspec.structs.replace(resolved.settings, signals=Signals.STATUS)
    return msgspec.structs.replace(resolved, settings=settings, origins=origins)


def _program(description: Description, workdir: Path, path: Path) -> str:
    binary = description.binary
    program = which(str(workdir / binary) if "/" in binary else binary)
    if program is None:
        raise UsageError(
            f"the driver {_shown(path, workdir)} runs '{description.binary}' ({description.title}), which was not found"
        )
    return program


def _check(resolved: Resolved, description: Description) -> Resolved:
    """Reports settings that this driver does not support: an error for a flag, a warning for the rest."""
    settings, warnings = resolved.settings, []
    unsupported: list[tuple[str, str]] = []
    if settings.allowed_tools:
        wrong = [t for t in settings.allowed_tools if not is_valid_tool(t, description.tools)]
        if not description.allow_list:
            warnings.append(
                f"{resolved.origins['allowed_tools']}: {description.title} ignores the list of allowed tools"
            )
        elif wrong:
            hints = ", ".join(f"'{t}'{nearest(t.partition('(')[0], description.tools)}" for t in wrong)
            unsupported.append(("allowed_tools", f"{description.title} has no such tool: {hints}"))
    if settings.model:
        unsupported.append(("model", f"the driver {description.name} does not support choosing a model"))
    if settings.continue_session and not description.sessions and resolved.origins["continue_session"] != BY_DEFAULT:
        unsupported.append(("continue_session", f"{description.title} cannot resume a session"))
    for name, text in unsupported:
        origin = resolved.origins[name]
        if origin.startswith("--"):
            known = f"; available tools: {', '.join(description.tools)}" if name == "allowed_tools" else ""
            raise UsageError(f"{origin}: {text}{known}")
        warnings.append(f"{origin}: {text}")
    return resolved.warn(*warnings)


def is_valid_tool(tool: str, patterns: tuple[str, ...]) -> bool:
    """Whether a tool is one of the patterns, or one of them with arguments: `Bash` also allows `Bash(git *)`."""
    name, bracket, rest = tool.partition("(")
    if tool in patterns or not bracket or not rest.endswith(")"):
        return tool in patterns
    return name in patterns or any(p.startswith(f"{name}(") for p in patterns)


def _transcript(resolved: Resolved, description: Description) -> Transcript:
    requested = resolved.settings.transcript
    if requested != transcripts.AUTO:
        return Transcript(*transcripts.select(requested, None))
    for name, why in (
        (description.name, "from the driver's name"),
        (Path(description.binary).name, "from the name of its CLI"),
    ):
        try:
            return Transcript(transcripts.canonical(name), why)
        except UsageError:
            continue
    if not description.live or description.filter.strip() in ("", "empty"):
        return Transcript("plain", "the format of this driver's output is not known; set it with --transcript NAME")
    jq = which("jq")
    if jq is None:
        return Transcript("plain", "the driver has a filter for its output, but jq is not installed")
    wrong = filters.complaint(jq, description.filter, resolved.environ)
    if wrong is not None:
        warning = f"jq rejects the filter of the driver {description.name}: {wrong}"
        return Transcript("plain", "the driver's filter does not work", warnings=(warning,))
    return Transcript("plain", "through the driver's own filter, with jq", jq)


def _shown(path: Path, workdir: Path) -> str:
    return str(path.relative_to(workdir)) if path.is_relative_to(workdir) else str(path)
