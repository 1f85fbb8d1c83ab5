"""Everything that is decided before a run starts. `--dry-run` shows it, the loop runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ralph.agents.compose import arguments
from ralph.agents.spec import MAX_ARGUMENT, AgentSpec, Delivery, Invocation
from ralph.errors import UsageError
from ralph.judging.prices import Prices
from ralph.launching.launcher import CommandLine, Launcher, SessionMode
from ralph.masking.credentials import looks_like_credential
from ralph.trust.approval import Trust

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ralph.config.layers import Resolved
    from ralph.config.settings import Settings
    from ralph.judging.signals import Markers, SignalReader


class Launch(msgspec.Struct, frozen=True):
    """An agent, and how to start it with a prompt."""

    resolved: Resolved
    workdir: Path
    agent: str
    title: str
    version: str | None
    #: the arguments before the prompt
    base: list[str]
    invocation: Invocation
    env: dict[str, str]
    transcript: str
    transcript_why: str
    spec: AgentSpec | None = None
    #: a shell command in which {prompt} stands for the path of the prompt file
    template: str | None = None
    launcher: Launcher | None = None
    #: which convention's files this run follows, and why
    dialect: str | None = None
    prices: Prices = Prices()
    #: reads how the agent reports that it is done, if it does not use markers
    signals: Callable[[Markers], SignalReader] | None = None
    #: what the user has approved; checked again just before the run starts
    trust: Trust = Trust()
    #: the agents to use while this one is rate-limited, in this order
    fallbacks: tuple[Launch, ...] = ()

    @property
    def settings(self) -> Settings:
        return self.resolved.settings

    @property
    def session_mode(self) -> SessionMode:
        """Whether and how the agent's own session is continued; FRESH if that is not wanted or not possible."""
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
        """The names of variables in the agent's environment that look like credentials."""
        known = set(self.spec.login_env) if self.spec else set()
        return sorted(n for n in self.env if n in known or looks_like_credential(n))

    @property
    def tells(self) -> tuple[str, ...]:
        """What the agent's output reports. The user's own command may report everything that its format can carry."""
        if self.transcript == "plain":
            return ()
        return ("usage", "cost") if self.spec is None else self.spec.tells

    @property
    def cost_gap(self) -> str | None:
        """Why its cost will not be known, as far as that is clear before the run."""
        if "cost" in self.tells:
            return None
        if "usage" not in self.tells:
            return f"the output of {self.title} reports neither its cost nor how many tokens it uses"
        model = self.settings.model
        known = self.prices.any if model is None else self.prices.knows(model)
        return None if known else f"{self.title} reports no cost, and no price is known for {model or 'its model'}"

    @property
    def idle_timeout(self) -> tuple[float, str]:
        """How long an iteration may be silent, and where that is set: by the user, else in the agent's spec.

        `adapters.NAME.timeout` sets it for one agent, and overrides a file's setting for all of them.
        """
        origin, adapter = self.resolved.origins["idle_timeout"], self.settings.adapters.get(self.agent)
        typed = origin.startswith("-") or origin.isupper()  # a flag or a variable
        if adapter is not None and adapter.timeout is not None and not typed:
            return adapter.timeout, f"adapters.{self.agent}.timeout"
        if self.resolved.is_default("idle_timeout") and self.spec is not None and self.spec.idle_timeout is not None:
            return self.spec.idle_timeout, f"for {self.spec.title}"
        return self.settings.idle_timeout, origin

    @property
    def wall_timeout(self) -> tuple[float, str]:
        """How long an iteration may take, and where that is set: by the user, else in the agent's spec."""
        if self.resolved.is_default("wall_timeout") and self.spec is not None and self.spec.wall_timeout is not None:
            return self.spec.wall_timeout, f"for {self.spec.title}"
        return self.settings.wall_timeout, self.resolved.origins["wall_timeout"]

    def reader(self, markers: Markers) -> SignalReader | None:
        """Reads how the agent reports that it is done; None if it uses markers."""
        own = self.launcher.reader() if self.launcher else None
        return self.signals(markers) if own is None and self.signals is not None else own

    def base_for(self, session: str | None, *, resume: bool) -> list[str]:
        """`base` with the flags that name or resume the agent's session."""
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

    def command_line(
        self, prompt: str, prompt_file: Path, session: str | None = None, *, resume: bool = False
    ) -> CommandLine:
        """The command for a prompt; a UsageError if the agent cannot take this prompt."""
        if self.launcher is not None:
            return self.launcher.command_line(prompt, prompt_file, session, resume=resume)
        base = self.base_for(session, resume=resume)
        if self.template is not None:
            return _from_template(base, self.template, prompt, prompt_file)
        flag = [self.invocation.prompt_flag] if self.invocation.prompt_flag else []
        match self.invocation.prompt:
            case Delivery.STDIN:
                return CommandLine(base, _encoded(prompt))
            case Delivery.FILE:
                if any("{prompt_file}" in argument for argument in base):
                    return CommandLine([a.replace("{prompt_file}", str(prompt_file)) for a in base], None)
                return CommandLine([*base, *flag, str(prompt_file)], None)
            case Delivery.ARGUMENT:
                return CommandLine([*base, *flag, self._as_argument(prompt)], None)

    def _as_argument(self, prompt: str) -> str:
        if prompt.startswith("-"):
            # Most parsers would read it as a flag, even after another flag. A leading newline changes nothing else.
            prompt = "\n" + prompt
        size = len(_encoded(prompt))
        if size > MAX_ARGUMENT:
            raise UsageError(
                f"the prompt is {size:,} bytes long, but {self.title} takes it as one argument, "
                f"which the system limits to {MAX_ARGUMENT:,} bytes.\n"
                "  Shorten it, let it refer to a file that the agent reads, or use stdin (prompt_mode: stdin) if the "
                "agent can read it there."
            )
        if "\0" in prompt:
            raise UsageError(
                f"the prompt contains a NUL byte, which {self.title} cannot take as an argument: remove it"
            )
        return prompt

    @property
    def delivery(self) -> str:
        """How the agent gets the prompt, in words for `--dry-run`."""
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


def _encoded(prompt: str) -> bytes:
    return prompt.encode("utf-8", "surrogateescape")


def _from_template(base: list[str], template: str, prompt: str, prompt_file: Path) -> CommandLine:
    """The user's shell command, with the prompt as a file if it contains `{prompt}`, else on stdin."""
    if "{prompt}" not in template:
        return CommandLine([*base, template], _encoded(prompt))
    import shlex

    return CommandLine([*base, template.replace("{prompt}", shlex.quote(str(prompt_file)))], None)
