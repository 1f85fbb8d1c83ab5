"""Making a plan: which agent, found where, started how. Nothing is started but version probes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ralph.agents import adapters as transcripts
from ralph.agents.compose import arguments, choose_invocation, unknown_tools
from ralph.agents.spec import AgentSpec, Delivery, Invocation
from ralph.agents.versions import below
from ralph.config.settings import OnLimit, PromptMode
from ralph.dialects.found import MODULES
from ralph.dialects.found import module as dialect_module
from ralph.errors import UsageError
from ralph.judging.prices import find as find_prices
from ralph.planning.environment import login_kept_back
from ralph.planning.launch import Launch
from ralph.system.programs import which
from ralph.trust import items as trust

if TYPE_CHECKING:
    from ralph.agents.detect import Installed
    from ralph.config.layers import Resolved


def prepare_launch(resolved: Resolved, workdir: Path) -> Launch:
    """Chooses the agent and how to start it. Raises UsageError; starts nothing but version probes and, where the
    user trusts them, the hooks by which another convention's files say what they are."""
    trust.require(trust.starting(resolved, workdir))
    prices = find_prices(resolved)
    launch = msgspec.structs.replace(_choose(resolved, workdir), prices=prices)
    launch = msgspec.structs.replace(launch, resolved=with_warnings(launch.resolved, _unpriced(launch)))
    if resolved.settings.on_limit is not OnLimit.FALLBACK:
        return launch
    from ralph.planning.fallback import with_fallbacks

    return with_fallbacks(launch, resolved, workdir)


def _choose(resolved: Resolved, workdir: Path) -> Launch:
    launch = _started(resolved, workdir)
    if resolved.settings.plan is None or launch.launcher is not None:
        return launch
    from ralph.dialects.provider.launcher import follow
    from ralph.dialects.provider.planfile import is_followed

    return follow(launch) if is_followed(resolved) else launch


def _started(resolved: Resolved, workdir: Path) -> Launch:
    settings = resolved.settings
    for dialect, (_, setting) in MODULES.items():
        if getattr(settings, setting):
            return dialect_module(dialect).launch(resolved, workdir)
    if settings.agent_cmd is not None:
        return _template_launch(resolved, workdir, settings.agent_cmd)
    if settings.agent == "custom":
        return _custom_launch(resolved, workdir)
    return _spec_launch(resolved, workdir)


def _template_launch(resolved: Resolved, workdir: Path, command: str) -> Launch:
    if not command.strip():
        raise UsageError("--agent-cmd is empty: give it the command that runs your agent")
    resolved = without_flags(resolved, "--agent-cmd")
    shell = which("bash")
    base = [shell, "-lc"] if shell else ["sh", "-c"]
    name, why = transcripts.select(resolved.settings.transcript, None)
    return Launch(
        resolved,
        workdir,
        "custom",
        "your command",
        None,
        base,
        Invocation(),
        _environment(),
        name,
        why,
        template=command,
    )


def _custom_launch(resolved: Resolved, workdir: Path) -> Launch:
    settings = resolved.settings
    if not settings.command:
        raise UsageError(
            f"the agent is 'custom' ({resolved.origins['agent']}), which needs a command.\n"
            "  Set cli.command in ralph.yml, or say --agent-cmd 'COMMAND'."
        )
    program = _program(resolved, workdir, "the custom agent's command")
    resolved = without_flags(resolved, "a custom agent")
    delivery = {
        PromptMode.STDIN: Delivery.STDIN,
        PromptMode.FILE: Delivery.FILE,
        PromptMode.ARG: Delivery.ARGUMENT,
    }[settings.prompt_mode]
    invocation = Invocation(settings.args, delivery, settings.prompt_flag)
    name, why = transcripts.select(settings.transcript, None)
    return Launch(
        resolved,
        workdir,
        "custom",
        Path(program).name,
        None,
        [program, *settings.args],
        invocation,
        _environment(),
        name,
        why,
    )


def _spec_launch(resolved: Resolved, workdir: Path) -> Launch:
    from ralph.agents import detect, registry

    settings = resolved.settings
    if settings.agent == "auto":
        enabled = {name: a.enabled for name, a in settings.adapters.items()}
        found = detect.auto(enabled, settings.agent_priority)
    elif settings.command:
        spec = registry.get(settings.agent, workdir)
        program = _program(resolved, workdir, f"the command for {spec.title},")
        found = detect.Installed(spec, program, detect.probe(spec, program)[1])
    else:
        found = detect.explicit(settings.agent, workdir)
    return launch_for(with_warnings(resolved, registry.warnings()), workdir, found)


def launch_for(resolved: Resolved, workdir: Path, found: Installed) -> Launch:
    """How a run would start this agent."""
    from ralph.agents import detect

    spec = found.spec
    resolved = _hinted_tools(resolved, spec)
    settings = resolved.settings
    invocation = choose_invocation(spec, found.version, lambda args: detect.help_text(found.program, args))
    base = [found.program, *arguments(spec, invocation, model=settings.model, tools=settings.allowed_tools)]
    resolved = _check_sessions(resolved, spec, invocation)
    resolved = with_warnings(resolved, [*_too_old(found), *login_kept_back(resolved, spec)])
    name, why = transcripts.select(settings.transcript, invocation.transcript)
    environment = _environment()
    defaults = {k: v for k, v in invocation.env_unless_set.items() if k not in environment}
    invocation = msgspec.structs.replace(invocation, env=defaults | invocation.env)
    environment |= invocation.env
    for variable in spec.unset_env:
        environment.pop(variable, None)
    environment = {name: value for name, value in environment.items() if name not in resolved.kept_back}
    _check_environment(resolved, spec, environment)
    return Launch(
        resolved, workdir, spec.name, spec.title, found.version, base, invocation, environment, name, why, spec=spec
    )


def _hinted_tools(resolved: Resolved, spec: AgentSpec) -> Resolved:
    """A list of tools that was written for other agents as well: what does not fit this one is left out, and told."""
    tools, origin = resolved.settings.allowed_tools, resolved.origins["allowed_tools"]
    if "allowed_tools" not in resolved.hints or not tools:
        return resolved
    kept: tuple[str, ...] = ()
    if spec.tools is None:
        text = f"{spec.title} cannot restrict its tools, so this list is not used"
    else:
        kept = tuple(t for t in tools if not unknown_tools(spec, (t,)))
        if kept == tools or not kept:
            return resolved
        left = ", ".join(t for t in tools if t not in kept)
        text = f"{spec.title} has no such tools, so they are left out: {left}"
    changed = msgspec.structs.replace(resolved, settings=msgspec.structs.replace(resolved.settings, allowed_tools=kept))
    return with_warnings(changed, [f"{origin}: {text}"])


def _check_environment(resolved: Resolved, spec: AgentSpec, environment: dict[str, str]) -> None:
    for variable, what in spec.needs_env.items():
        if variable in resolved.kept_back:
            raise UsageError(
                f"{spec.title} needs the environment variable {variable}, which {resolved.origins['env_deny']} keeps "
                "from it"
            )
        if not environment.get(variable, "").strip():
            raise UsageError(f"{spec.title} needs the environment variable {variable}: {what}")


def _check_sessions(resolved: Resolved, spec: AgentSpec, invocation: Invocation) -> Resolved:
    """Sessions that cannot be resumed: asked for by flag a mistake, elsewhere a warning."""
    if not resolved.settings.continue_session or (invocation.session or spec.session):
        return resolved
    origin = resolved.origins["continue_session"]
    text = f"{spec.title} cannot go on with a session without a person: each iteration would start afresh"
    if origin.startswith("--"):
        raise UsageError(f"{text}; leave out --continue-session")
    return msgspec.structs.replace(resolved, warnings=[*resolved.warnings, f"{origin}: {text}"])


_FOR_KNOWN_AGENTS = {
    "model": "the model",
    "allowed_tools": "the list of tools",
    "continue_session": "going on with a session",
}


def without_flags(resolved: Resolved, agent: str) -> Resolved:
    """What cannot be passed on to it: asked for on this command line it is a mistake, elsewhere a warning."""
    for name, what in _FOR_KNOWN_AGENTS.items():
        value, origin = getattr(resolved.settings, name), resolved.origins[name]
        if not value:
            continue
        if origin.startswith("-"):
            raise UsageError(f"{origin} has no effect with {agent}: ralph knows no flag of it for {what}; leave it out")
        shown = f"{name} '{value}'" if isinstance(value, str) else name
        warning = f"{shown} ({origin}) is not used: ralph knows no flag of {agent} for {what}"
        resolved = msgspec.structs.replace(resolved, warnings=[*resolved.warnings, warning])
    return resolved


def _unpriced(launch: Launch) -> list[str]:
    """What is said before the start about a limit of cost."""
    if not launch.settings.max_cost or "cost" in launch.tells:
        return []
    if launch.cost_gap is not None:
        return [f"--max-cost cannot be enforced: {launch.cost_gap}"]
    if launch.settings.model is not None:
        return []
    return [
        f"--max-cost is enforced only if a price is known for the model that {launch.title} uses: it reports no cost"
    ]


def _too_old(found: Installed) -> list[str]:
    spec = found.spec
    if found.version is None or not below(found.version, spec.version.minimum):
        return []
    text = f"{spec.title} {found.version} is older than {spec.version.minimum}, the oldest that ralph was made for"
    return [f"{text}: it may refuse its flags, or not be understood. To get a newer one: {spec.install or spec.link}"]


def with_warnings(resolved: Resolved, more: list[str]) -> Resolved:
    return msgspec.structs.replace(resolved, warnings=[*resolved.warnings, *more]) if more else resolved


def _environment() -> dict[str, str]:
    return dict(os.environ)


def _program(resolved: Resolved, workdir: Path, what: str) -> str:
    """The program that `command` names."""
    command = resolved.settings.command or ""
    path = _expand(command, resolved.bases.get("command", workdir))
    program = which(path)
    if program is None:
        why = "is not executable" if Path(path).is_file() else "was not found"
        raise UsageError(f"{what} '{command}' ({resolved.origins['command']}) {why}")
    return program


def _expand(command: str, base: Path) -> str:
    """`./tool` in a file means beside that file; `tool` is looked for in PATH."""
    expanded = os.path.expanduser(command)  # noqa: PTH111 - a bare name must stay one
    if "/" in expanded and not expanded.startswith("/"):
        return str(base / expanded)
    return expanded
