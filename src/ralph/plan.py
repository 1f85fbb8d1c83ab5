"""A run before it starts: every question answered, nothing started. `--dry-run` shows it, the loop runs it."""

from __future__ import annotations

import os
import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ralph import trust
from ralph.agents.compose import arguments, choose_invocation, unknown_tools
from ralph.agents.spec import MAX_ARGUMENT, AgentSpec, Delivery, Invocation
from ralph.agents.versions import below
from ralph.config.settings import OnLimit, PromptMode, Settings, Signals
from ralph.dialects.found import MODULES
from ralph.dialects.found import module as dialect_module
from ralph.errors import UsageError
from ralph.prices import Prices
from ralph.prices import find as find_prices
from ralph.programs import which
from ralph.transcripts import registry as transcripts
from ralph.transcripts.events import Tag, Text

if TYPE_CHECKING:
    from ralph.agents.detect import Installed
    from ralph.config.layers import Resolved
    from ralph.loop.observe import Observation
    from ralph.loop.signals import Markers, SignalReader
    from ralph.runners.process import Ended
    from ralph.transcripts.base import TranscriptAdapter
    from ralph.transcripts.events import TranscriptEvent

_CREDENTIAL = re.compile(
    r"(^|_)(API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASS|PASSPHRASE|CREDENTIALS?|AUTH|PAT)(_|$)"
    r"|(PASSWORD|PASSWD|TOKEN|SECRET|APIKEY)$",
    re.IGNORECASE,
)


class SessionMode(StrEnum):
    FRESH = "fresh"
    #: with the id that the agent tells
    RESUME = "resume"
    #: with an id that we choose at the start
    NAME = "name"


class Launch(msgspec.Struct, frozen=True):
    """One command line, exactly. `env` is added to the plan's."""

    argv: list[str]
    stdin: bytes | None
    env: dict[str, str] = {}
    #: it wants a descriptor 3, whose lines go to `Launcher.aside`
    aside: bool = False


class Examined(msgspec.Struct, frozen=True):
    """What `ralph doctor` is told about an agent that is not a spec."""

    version: str | None = None
    minimum: str | None = None
    notes: tuple[str, ...] = ()
    #: why it cannot be used as things are
    problem: str | None = None


class Launcher:
    """Starts an agent that is not a spec: a script, a driver, a provider of another convention."""

    #: in words, for `--dry-run`
    delivery = ""
    #: whether it can go on with a session
    resumes = False

    def launch(self, prompt: str, prompt_file: Path, session: str | None, *, resume: bool) -> Launch:
        """The command for a prompt; a UsageError if it cannot be delivered."""
        raise NotImplementedError

    def render(self, prompt: str) -> str:
        """The prompt as the agent gets it, where the convention has variables in it."""
        return prompt

    def adapter(self, prompt: str) -> TranscriptAdapter | None:
        """Another adapter than that of the plan, for the next iteration."""
        return None

    def reader(self) -> SignalReader | None:
        """How this convention says that it is done; None: by the usual markers."""
        return None

    def aside(self, line: str) -> list[TranscriptEvent]:
        """A line that came on descriptor 3."""
        return [Text(Tag.SYS, line)]

    def finish(self, folder: Path, ended: Ended, seen: Observation) -> list[TranscriptEvent]:
        """What is to be added once an iteration has ended, before it is judged; `folder` is its place in the journal."""
        return []

    def find_session(self, stdout: Path) -> str | None:
        """The session id in a recording, where this convention knows better than the adapter."""
        return None

    def fallback_session(self, stdout: Path) -> str | None:
        """The last resort for a session id."""
        return None

    def examine(self) -> Examined:
        """What can be said about the agent without running it on a prompt."""
        return Examined()

    def help_for(self, outcome: str) -> str | None:
        """What a person should do about an outcome, in the convention's own words."""
        return None


class Plan(msgspec.Struct, frozen=True):
    resolved: Resolved
    workdir: Path
    agent: str
    title: str
    version: str | None
    #: argv up to the prompt
    base: list[str]
    invocation: Invocation
    env: dict[str, str]
    transcript: str
    transcript_why: str
    spec: AgentSpec | None = None
    #: a shell command in which {prompt} is the prompt's file
    template: str | None = None
    launcher: Launcher | None = None
    #: which convention's files this run follows, and why
    dialect: str | None = None
    prices: Prices = Prices()
    #: the agents that take over while this one is limited, in this order
    relief: tuple[Plan, ...] = ()

    @property
    def settings(self) -> Settings:
        return self.resolved.settings

    @property
    def session_mode(self) -> SessionMode:
        """Whether the agent's session is gone on with, if that is wanted and possible."""
        if not self.settings.continue_session:
            return SessionMode.FRESH
        if self.launcher is not None:
            return SessionMode.RESUME if self.launcher.resumes else SessionMode.FRESH
        flags = self.invocation.session or self.spec.session if self.spec else None
        if flags is None:
            return SessionMode.FRESH
        return SessionMode.NAME if flags.start else SessionMode.RESUME

    @property
    def credentials(self) -> list[str]:
        """Names of variables that look like credentials and reach the agent."""
        known = set(self.spec.login_env) if self.spec else set()
        return sorted(n for n in self.env if n in known or _CREDENTIAL.search(n))

    @property
    def tells(self) -> tuple[str, ...]:
        """What its output can tell; of a command of the user's own, all is possible that its format can say."""
        if self.transcript == "plain":
            return ()
        return ("usage", "cost") if self.spec is None else self.spec.tells

    @property
    def cost_gap(self) -> str | None:
        """Why its cost will not be known, as far as that can be seen before it runs."""
        if "cost" in self.tells:
            return None
        if "usage" not in self.tells:
            return f"the output of {self.title} tells neither what it costs nor how many tokens it uses"
        model = self.settings.model
        known = self.prices.any if model is None else self.prices.knows(model)
        return None if known else f"{self.title} reports no cost, and no price is known for {model or 'its model'}"

    @property
    def idle_timeout(self) -> tuple[float, str]:
        """How long an iteration may be silent, and where that was said: by the user, else by the agent's file."""
        if self.resolved.is_default("idle_timeout") and self.spec is not None and self.spec.idle_timeout is not None:
            return self.spec.idle_timeout, f"known of {self.spec.title}"
        return self.settings.idle_timeout, self.resolved.origins["idle_timeout"]

    @property
    def wall_timeout(self) -> tuple[float, str]:
        """The same for how long it may take; `adapters.NAME.timeout` is said of one agent."""
        if self.resolved.is_default("wall_timeout"):
            adapter = self.settings.adapters.get(self.agent)
            if adapter is not None and adapter.timeout is not None:
                return adapter.timeout, f"adapters.{self.agent}.timeout"
            if self.spec is not None and self.spec.wall_timeout is not None:
                return self.spec.wall_timeout, f"known of {self.spec.title}"
        return self.settings.wall_timeout, self.resolved.origins["wall_timeout"]

    def reader(self, markers: Markers) -> SignalReader | None:
        """How this run's agent says that it is done; None: by the markers."""
        own = self.launcher.reader() if self.launcher else None
        if own is not None or self.settings.signals is not Signals.STATUS:
            return own
        from ralph.dialects.driver.status import StatusReader

        plan = self.settings.fix_plan
        return StatusReader(markers, self.workdir / plan if plan else None)

    def base_for(self, session: str | None, *, resume: bool) -> list[str]:
        """`base`, for a session of the agent's own."""
        if self.spec is None or session is None:
            return list(self.base)
        settings = self.settings
        flags = arguments(
            self.spec,
            self.invocation,
            model=settings.model,
            tools=settings.allowed_tools,
            session=session,
            resume=resume,
        )
        return [self.base[0], *flags]

    def launch(self, prompt: str, prompt_file: Path, session: str | None = None, *, resume: bool = False) -> Launch:
        """The command for a prompt; a UsageError if it cannot be delivered."""
        if self.launcher is not None:
            return self.launcher.launch(prompt, prompt_file, session, resume=resume)
        data = prompt.encode("utf-8", "surrogateescape")
        base = self.base_for(session, resume=resume)
        if self.template is not None:
            if "{prompt}" in self.template:
                import shlex

                command = self.template.replace("{prompt}", shlex.quote(str(prompt_file)))
                return Launch([*base, command], None)
            return Launch([*base, self.template], data)
        flag = [self.invocation.prompt_flag] if self.invocation.prompt_flag else []
        match self.invocation.prompt:
            case Delivery.STDIN:
                return Launch(base, data)
            case Delivery.FILE:
                if any("{prompt_file}" in a for a in base):
                    return Launch([a.replace("{prompt_file}", str(prompt_file)) for a in base], None)
                return Launch([*base, *flag, str(prompt_file)], None)
            case Delivery.ARGUMENT:
                if prompt.startswith("-"):
                    # Most parsers take it for a flag, also behind one; a leading newline changes nothing else.
                    prompt, data = "\n" + prompt, b"\n" + data
                if len(data) > MAX_ARGUMENT:
                    raise UsageError(
                        f"the prompt is {len(data):,} bytes long, and {self.title} takes it as one argument, "
                        f"of which the system allows {MAX_ARGUMENT:,} bytes.\n"
                        "  Shorten it, let it point to a file that the agent reads, or give it on stdin "
                        "(prompt_mode: stdin) if the agent can take it so."
                    )
                if "\0" in prompt:
                    raise UsageError(f"the prompt holds a NUL byte, which {self.title} cannot take as an argument")
                return Launch([*base, *flag, prompt], None)

    @property
    def delivery(self) -> str:
        """In words, for `--dry-run`."""
        if self.launcher is not None:
            return self.launcher.delivery
        if self.template is not None:
            return "as a file, named in the command" if "{prompt}" in self.template else "on stdin"
        flag = f" after {self.invocation.prompt_flag}" if self.invocation.prompt_flag else ""
        return {
            Delivery.STDIN: "on stdin",
            Delivery.FILE: f"as a file{flag}",
            Delivery.ARGUMENT: f"as one argument{flag}",
        }[self.invocation.prompt]


def make_plan(resolved: Resolved, workdir: Path) -> Plan:
    """Chooses the agent and how to start it. Raises UsageError; starts nothing but version probes and, where the
    user trusts them, the hooks by which another convention's files say what they are."""
    trust.require(trust.starting(resolved, workdir))
    prices = find_prices(resolved)
    plan = msgspec.structs.replace(_choose(resolved, workdir), prices=prices)
    plan = msgspec.structs.replace(plan, resolved=with_warnings(plan.resolved, _unpriced(plan)))
    if resolved.settings.on_limit is not OnLimit.FALLBACK:
        return plan
    from ralph.relief import with_relief

    return with_relief(plan, resolved, workdir)


def _choose(resolved: Resolved, workdir: Path) -> Plan:
    plan = _started(resolved, workdir)
    if resolved.settings.plan is None or plan.launcher is not None:
        return plan
    from ralph.dialects.provider.launcher import follow
    from ralph.dialects.provider.planfile import is_followed

    return follow(plan) if is_followed(resolved) else plan


def _started(resolved: Resolved, workdir: Path) -> Plan:
    settings = resolved.settings
    for dialect, (_, setting) in MODULES.items():
        if getattr(settings, setting):
            return dialect_module(dialect).plan(resolved, workdir)
    if settings.agent_cmd is not None:
        return _template_plan(resolved, workdir, settings.agent_cmd)
    if settings.agent == "custom":
        return _custom_plan(resolved, workdir)
    return _spec_plan(resolved, workdir)


def _template_plan(resolved: Resolved, workdir: Path, command: str) -> Plan:
    if not command.strip():
        raise UsageError("--agent-cmd is empty: give it the command that runs your agent")
    resolved = without_flags(resolved, "--agent-cmd")
    shell = which("bash")
    base = [shell, "-lc"] if shell else ["sh", "-c"]
    name, why = transcripts.select(resolved.settings.transcript, None)
    return Plan(
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


def _custom_plan(resolved: Resolved, workdir: Path) -> Plan:
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
    return Plan(
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


def _spec_plan(resolved: Resolved, workdir: Path) -> Plan:
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
    return plan_for(with_warnings(resolved, registry.warnings()), workdir, found)


def plan_for(resolved: Resolved, workdir: Path, found: Installed) -> Plan:
    """How a run would start this agent."""
    from ralph.agents import detect

    spec = found.spec
    resolved = _hinted_tools(resolved, spec)
    settings = resolved.settings
    invocation = choose_invocation(spec, found.version, lambda args: detect.help_text(found.program, args))
    base = [found.program, *arguments(spec, invocation, model=settings.model, tools=settings.allowed_tools)]
    resolved = _check_sessions(resolved, spec, invocation)
    resolved = with_warnings(resolved, _too_old(found))
    name, why = transcripts.select(settings.transcript, invocation.transcript)
    environment = _environment()
    defaults = {k: v for k, v in invocation.env_unless_set.items() if k not in environment}
    invocation = msgspec.structs.replace(invocation, env=defaults | invocation.env)
    environment |= invocation.env
    for variable in spec.unset_env:
        environment.pop(variable, None)
    _check_environment(spec, environment)
    return Plan(
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


def _check_environment(spec: AgentSpec, environment: dict[str, str]) -> None:
    for variable, what in spec.needs_env.items():
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


def _unpriced(plan: Plan) -> list[str]:
    """What is said before the start about a limit of cost."""
    if not plan.settings.max_cost or "cost" in plan.tells:
        return []
    if plan.cost_gap is not None:
        return [f"--max-cost cannot be enforced: {plan.cost_gap}"]
    if plan.settings.model is not None:
        return []
    return [f"--max-cost is enforced only if a price is known for the model that {plan.title} uses: it reports no cost"]


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
