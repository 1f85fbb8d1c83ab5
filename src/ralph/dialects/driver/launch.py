"""How a run starts the agent of a driver, or, where a driver is only named, the agent of that name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ralph.agents import adapters as transcripts
from ralph.agents import detect, registry
from ralph.agents.spec import Invocation
from ralph.config.settings import Signals
from ralph.dialects.driver import jq as filters
from ralph.dialects.driver.config import BY_DEFAULT, layer, read
from ralph.dialects.driver.host import Described, Host
from ralph.dialects.driver.launcher import DriverLauncher
from ralph.dialects.driver.locate import FOLDERS, all_drivers, locate
from ralph.errors import UsageError, nearest
from ralph.launching.known import launch_for, spec_of
from ralph.launching.launch import Launch
from ralph.system.programs import which

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ralph.agents.spec import AgentSpec
    from ralph.config.layers import Resolved
    from ralph.dialects.detect import Found
    from ralph.dialects.driver.ralphrc import RcFile
    from ralph.trust.approval import Trust

#: Variables of a shell itself: a file that is only data must not set them.
_KEPT = frozenset({"PATH", "IFS", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "HOME", "PWD"})


def launch(resolved: Resolved, workdir: Path, trust: Trust) -> Launch:
    name, origin = resolved.settings.driver or "", resolved.origins["driver"]
    path = locate(name, workdir, origin)
    shown, file = read(workdir, resolved.environ)
    if path is None:
        return _known_agent(resolved, workdir, name, file, trust)
    resolved = _by_status(resolved)
    host = host_for(path, workdir, resolved, shown, file)
    described = host.describe()
    program = _program(described, workdir, path)
    resolved = _check(resolved, described)
    transcript, why, jq, warnings = _transcript(resolved, described)
    if described.live and variables(resolved, shown, file)["CLAUDE_OUTPUT_FORMAT"] != _format(resolved, file):
        unused = f"CLAUDE_OUTPUT_FORMAT={_format(resolved, file)}"
        warnings.append(f"{unused} is not used: the output is read as it streams, as json")
    exported = {key: a.value for key, a in file.values.items() if a.exported and _allowed(key)}
    plan_file = resolved.settings.fix_plan
    return Launch(
        resolved.warn(*warnings),
        workdir,
        described.name,
        described.title or described.name,
        None,
        [program],
        Invocation(),
        resolved.environ | exported,
        transcript,
        why,
        launcher=DriverLauncher(
            host,
            described,
            env={},
            plan=workdir / plan_file if plan_file else None,
            context=resolved.settings.continue_session,
            jq=jq,
        ),
        dialect=f"driver ({_shown(path, workdir)})",
    )


def executables(found: Found, workdir: Path, environ: Mapping[str, str]) -> list[Path]:
    """The files of the repository that a run would execute: the driver, and what lies beside it."""
    name = layer(found, workdir, environ).values["driver"]
    path = locate(name, workdir, str(found.path))
    return [] if path is None else [path, *(p for p in all_drivers(workdir) if p != path and p.parent == path.parent)]


def host_for(path: Path, workdir: Path, resolved: Resolved, shown: str, file: RcFile) -> Host:
    return Host(path, workdir, variables(resolved, shown, file), resolved.environ)


def variables(resolved: Resolved, shown: str, file: RcFile) -> dict[str, str]:
    """What the loop of that convention would have set for a driver."""
    said = {key: a.value for key, a in file.values.items() if _allowed(key)}
    settings = resolved.settings
    given = {key: value for key in said if (value := resolved.environ.get(key))}
    return {
        **said,
        **given,
        "CLAUDE_OUTPUT_FORMAT": "json" if _format(resolved, file) == "text" else _format(resolved, file),
        "CLAUDE_PERMISSION_MODE": resolved.environ.get(
            "CLAUDE_PERMISSION_MODE", said.get("CLAUDE_PERMISSION_MODE") or "bypassPermissions"
        ),
        "CLAUDE_ALLOWED_TOOLS": ",".join(settings.allowed_tools),
        "CLAUDE_USE_CONTINUE": "true" if settings.continue_session else "false",
        "RALPHRC_FILE": shown,
        "PLATFORM_DRIVER": Path(settings.driver or "").name.removesuffix(".sh"),
    }


def _format(resolved: Resolved, file: RcFile) -> str:
    return _configured(resolved, file, "CLAUDE_OUTPUT_FORMAT") or "json"


def _allowed(key: str) -> bool:
    return key not in _KEPT and not key.startswith(("LD_", "BASH_FUNC_"))


def _by_status(resolved: Resolved) -> Resolved:
    """Agents of drivers speak of being done in a status block, unless it was said otherwise."""
    if resolved.settings.signals is not Signals.AUTO:
        return resolved
    origins = resolved.origins | {"signals": BY_DEFAULT}
    settings = msgspec.structs.replace(resolved.settings, signals=Signals.STATUS)
    return msgspec.structs.replace(resolved, settings=settings, origins=origins)


def _program(described: Described, workdir: Path, path: Path) -> str:
    program = which(described.binary) or which(str(workdir / described.binary))
    if program is None:
        raise UsageError(
            f"the driver {_shown(path, workdir)} runs '{described.binary}' ({described.title}), which was not found"
        )
    return program


def _check(resolved: Resolved, described: Described) -> Resolved:
    """What was asked for and this driver cannot do: by flag a mistake, elsewhere a warning."""
    settings, warnings = resolved.settings, []
    refused: list[tuple[str, str]] = []
    if settings.allowed_tools:
        wrong = [t for t in settings.allowed_tools if not is_valid_tool(t, described.tools)]
        if not described.allow_list:
            warnings.append(f"{resolved.origins['allowed_tools']}: {described.title} ignores the list of allowed tools")
        elif wrong:
            hints = ", ".join(f"'{t}'{nearest(t.partition('(')[0], described.tools)}" for t in wrong)
            refused.append(("allowed_tools", f"not a tool of {described.title}: {hints}"))
    if settings.model:
        refused.append(("model", f"the driver {described.name} takes no model"))
    if settings.continue_session and not described.sessions and resolved.origins["continue_session"] != BY_DEFAULT:
        refused.append(("continue_session", f"{described.title} cannot go on with a session: each starts afresh"))
    for name, text in refused:
        origin = resolved.origins[name]
        if origin.startswith("--"):
            known = f"; there are: {', '.join(described.tools)}" if name == "allowed_tools" else ""
            raise UsageError(f"{origin}: {text}{known}")
        warnings.append(f"{origin}: {text}")
    return resolved.warn(*warnings)


def is_valid_tool(tool: str, patterns: tuple[str, ...]) -> bool:
    """One of the patterns, or a tool of them with arguments: `Bash` allows `Bash(git *)`."""
    name, bracket, rest = tool.partition("(")
    if tool in patterns or not bracket or not rest.endswith(")"):
        return tool in patterns
    return name in patterns or any(p.startswith(f"{name}(") for p in patterns)


def _transcript(resolved: Resolved, described: Described) -> tuple[str, str, str | None, list[str]]:
    """The adapter, why, and the jq to run the driver's own filter with, if that is what shows it."""
    requested = resolved.settings.transcript
    if requested != transcripts.AUTO:
        return *transcripts.select(requested, None), None, []
    for name, why in ((described.name, "by the driver's name"), (Path(described.binary).name, "by the CLI it runs")):
        try:
            return transcripts.canonical(name), why, None, []
        except UsageError:
            continue
    if not described.live or described.filter.strip() in ("", "empty"):
        return "plain", "nothing is known about this driver's output; --transcript NAME says what it is", None, []
    jq = which("jq")
    if jq is None:
        return "plain", "the driver has a filter for its output, but there is no jq to run it", None, []
    wrong = filters.complaint(jq, described.filter)
    if wrong is not None:
        return "plain", "nothing is known of it", None, [f"jq does not take the filter of {described.name}: {wrong}"]
    return "plain", "through the driver's own filter, by jq", jq, []


def _known_agent(resolved: Resolved, workdir: Path, name: str, file: RcFile, trust: Trust) -> Launch:
    """No such file here: most projects of this convention rely on an agent that ralph knows itself."""
    origin = resolved.origins["driver"]
    resolved = _by_status(resolved).warn(*registry.warnings())
    command = _configured(resolved, file, "CLAUDE_CODE_CMD")
    if origin == BY_DEFAULT and command in ("", "claude"):
        enabled = {name: a.enabled for name, a in resolved.settings.adapters.items()}
        found = detect.auto(enabled, resolved.settings.agent_priority, environ=resolved.environ)
        return _named(launch_for(_with_model(resolved, found.spec, file), workdir, found))
    try:
        spec = spec_of(name, workdir, trust)
    except UsageError:
        drivers = [path.stem for path in all_drivers(workdir)]
        known = f"; there are: {', '.join(drivers)}" if drivers else ""
        raise UsageError(
            f"there is no driver '{name}' ({origin}){nearest(name, [*drivers, *registry.names()])}: neither "
            f"{' nor '.join(f'{folder}/{name}.sh' for folder in FOLDERS)} is here{known}, and ralph knows no such agent"
        ) from None
    resolved = _with_model(resolved, spec, file)
    program = which(command) if command and spec.name == "claude" else None
    if program is None:
        if command not in ("", "claude") and spec.name == "claude":
            resolved = resolved.warn(f"CLAUDE_CODE_CMD='{command}' is not one program; it is not used")
        return _named(launch_for(resolved, workdir, detect.explicit(spec, resolved.environ)))
    version = detect.probe(spec, program, resolved.environ)[1]
    return _named(launch_for(resolved, workdir, detect.Installed(spec, program, version)))


def _with_model(resolved: Resolved, spec: AgentSpec, file: RcFile) -> Resolved:
    """CLAUDE_MODEL is said of Claude, and would mean nothing to another agent."""
    model = _configured(resolved, file, "CLAUDE_MODEL")
    if spec.name != "claude" or not model or resolved.settings.model:
        return resolved
    settings = msgspec.structs.replace(resolved.settings, model=model)
    origins = resolved.origins | {"model": "CLAUDE_MODEL"}
    return msgspec.structs.replace(resolved, settings=settings, origins=origins)


def _configured(resolved: Resolved, file: RcFile, key: str) -> str:
    """In the environment or, weaker, in the file."""
    said = file.values.get(key)
    return resolved.environ.get(key) or (said.value if said else "")


def _named(launch: Launch) -> Launch:
    why = f"no driver of its own: ralph's {launch.agent}"
    return msgspec.structs.replace(launch, dialect=f"driver ({why})")


def _shown(path: Path, workdir: Path) -> str:
    return str(path.relative_to(workdir)) if path.is_relative_to(workdir) else str(path)
