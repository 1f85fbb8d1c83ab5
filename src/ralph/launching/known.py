"""How to start the agents that ralph knows and the user's own commands. Preparing a launch runs only version probes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ralph.agents import adapters as transcripts
from ralph.agents import detect, registry
from ralph.agents.compose import arguments, choose_invocation, unknown_tools
from ralph.agents.spec import AgentSpec, Delivery, Invocation
from ralph.agents.versions import below
from ralph.config.settings import CodexSandbox, PromptMode
from ralph.errors import UsageError
from ralph.launching.environment import login_withheld
from ralph.launching.launch import Launch
from ralph.system.programs import which
from ralph.trust.items import of_files

if TYPE_CHECKING:
    from ralph.agents.detect import Installed
    from ralph.config.layers import Resolved
    from ralph.trust.approval import Trust


def template_launch(resolved: Resolved, workdir: Path, command: str) -> Launch:
    """`--agent-cmd`: a shell command of the user's own."""
    if not command.strip():
        raise UsageError("--agent-cmd is empty: give the command that runs your agent")
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
        dict(resolved.environ),
        name,
        why,
        template=command,
    )


def custom_launch(resolved: Resolved, workdir: Path) -> Launch:
    """`agent: custom`: a program of the user's own, with its arguments."""
    settings = resolved.settings
    if not settings.command:
        raise UsageError(
            f"the agent is 'custom' ({resolved.origins['agent']}), which needs a command.\n"
            "  Set cli.command in ralph.yml, or use --agent-cmd 'COMMAND'."
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
        dict(resolved.environ),
        name,
        why,
    )


def spec_launch(resolved: Resolved, workdir: Path, trust: Trust) -> Launch:
    """An agent that ralph knows: the one in `agent`, or the first one installed."""
    settings = resolved.settings
    if settings.agent == "auto":
        enabled = {name: a.enabled for name, a in settings.adapters.items()}
        found = detect.auto(enabled, settings.agent_priority, environ=resolved.environ)
    elif settings.command:
        spec = spec_of(settings.agent, workdir, trust)
        program = _program(resolved, workdir, f"the command for {spec.title}")
        found = detect.Installed(spec, program, detect.probe(spec, program, resolved.environ)[1])
    else:
        found = detect.explicit(spec_of(settings.agent, workdir, trust), resolved.environ, settings.agent)
    return launch_for(resolved.warn(*registry.warnings()), workdir, found)


def spec_of(name: str, workdir: Path, trust: Trust) -> AgentSpec:
    """The agent with this name. An agent that the project defines is found only if the user has approved it."""
    return registry.get(name, workdir, lambda path: not trust.missing(of_files([path], workdir)))


def launch_for(resolved: Resolved, workdir: Path, found: Installed) -> Launch:
    """The launch of an installed agent."""
    spec = found.spec
    resolved = _hinted_tools(resolved, spec)
    settings = resolved.settings
    environ = resolved.environ
    invocation = choose_invocation(spec, found.version, lambda args: detect.help_text(found.program, args, environ))
    if spec.name == "codex" and settings.codex_sandbox is not CodexSandbox.NONE:
        # Unlike --sandbox, `codex exec resume` knows this flag, too.
        sandbox = ("-c", f'sandbox_mode="{settings.codex_sandbox}"')
        invocation = msgspec.structs.replace(invocation, approve=sandbox)
    base = [found.program, *arguments(spec, invocation, model=settings.model, tools=settings.allowed_tools)]
    resolved = _check_sessions(resolved, spec, invocation)
    resolved = resolved.warn(*_too_old(found), *login_withheld(resolved, spec))
    name, why = transcripts.select(settings.transcript, invocation.transcript)
    environment = dict(resolved.environ)
    defaults = {k: v for k, v in invocation.env_unless_set.items() if k not in environment}
    invocation = msgspec.structs.replace(invocation, env=defaults | invocation.env)
    environment |= invocation.env
    for variable in spec.unset_env:
        environment.pop(variable, None)
    environment = {name: value for name, value in environment.items() if name not in resolved.withheld}
    _check_environment(resolved, spec, environment)
    return Launch(
        resolved, workdir, spec.name, spec.title, found.version, base, invocation, environment, name, why, spec=spec
    )


def _hinted_tools(resolved: Resolved, spec: AgentSpec) -> Resolved:
    """Drops from a list meant for several agents the tools that this agent does not know, with a warning."""
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
        unknown = ", ".join(t for t in tools if t not in kept)
        text = f"{spec.title} has no such tools, so they are left out: {unknown}"
    changed = msgspec.structs.replace(resolved, settings=msgspec.structs.replace(resolved.settings, allowed_tools=kept))
    return changed.warn(f"{origin}: {text}")


def _check_environment(resolved: Resolved, spec: AgentSpec, environment: dict[str, str]) -> None:
    for variable, what in spec.needs_env.items():
        if variable in resolved.withheld:
            raise UsageError(
                f"{spec.title} needs the environment variable {variable}, which {resolved.origins['env_deny']} "
                "withholds from it"
            )
        if not environment.get(variable, "").strip():
            raise UsageError(f"{spec.title} needs the environment variable {variable}: {what}")


def _check_sessions(resolved: Resolved, spec: AgentSpec, invocation: Invocation) -> Resolved:
    """If the agent cannot resume sessions, --continue-session is an error; set elsewhere, it is a warning."""
    if not resolved.settings.continue_session or (invocation.session or spec.session):
        return resolved
    origin = resolved.origins["continue_session"]
    text = f"{spec.title} cannot continue a session in headless mode: each iteration would start a new one"
    if origin.startswith("--"):
        raise UsageError(f"{text}; remove --continue-session")
    return resolved.warn(f"{origin}: {text}")


_FOR_KNOWN_AGENTS = {
    "model": "the model",
    "allowed_tools": "the list of tools",
    "continue_session": "the session",
}


def without_flags(resolved: Resolved, agent: str) -> Resolved:
    """Settings that ralph cannot pass on to this agent are an error on the command line, elsewhere a warning."""
    for name, what in _FOR_KNOWN_AGENTS.items():
        value, origin = getattr(resolved.settings, name), resolved.origins[name]
        if not value:
            continue
        if origin.startswith("-"):
            raise UsageError(
                f"{origin} has no effect with {agent}: ralph does not know how to pass on {what}; remove it"
            )
        shown = f"{name} '{value}'" if isinstance(value, str) else name
        resolved = resolved.warn(f"{shown} ({origin}) is not used: ralph does not know how to pass {what} to {agent}")
    return resolved


def _too_old(found: Installed) -> list[str]:
    spec = found.spec
    if found.version is None or not below(found.version, spec.version.minimum):
        return []
    text = f"{spec.title} {found.version} is older than {spec.version.minimum}, the oldest version that ralph supports"
    return [f"{text}: it may reject flags, or its output may be misread. To update it: {spec.install or spec.link}"]


def _program(resolved: Resolved, workdir: Path, what: str) -> str:
    """The program that `command` names."""
    command = resolved.settings.command or ""
    path = _expand(command, resolved.bases.get("command", workdir))
    program = which(path)
    if program is None:
        why = "is not executable" if Path(path).is_file() else "was not found: correct its path, or install it"
        raise UsageError(f"{what} '{command}' ({resolved.origins['command']}) {why}")
    return program


def _expand(command: str, base: Path) -> str:
    """`./tool` in a file is relative to that file; `tool` is searched in PATH."""
    expanded = os.path.expanduser(command)  # noqa: PTH111 - a bare name must stay one
    if "/" in expanded and not expanded.startswith("/"):
        return str(base / expanded)
    return expanded
