"""A run before it starts: every question answered. `--dry-run` shows it, the loop runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ralph.agents.compose import arguments
from ralph.agents.spec import MAX_ARGUMENT, AgentSpec, Delivery, Invocation
from ralph.errors import UsageError
from ralph.judging.prices import Prices
from ralph.launching.launcher import CommandLine, Launcher, SessionMode
from ralph.masking.known import looks_like_credential
from ralph.trust.approval import Trust

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ralph.config.layers import Resolved
    from ralph.config.settings import Settings
    from ralph.judging.signals import Markers, SignalReader


class Launch(msgspec.Struct, frozen=True):
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
    #: how the agent reports that it is done, where that is not by markers
    signals: Callable[[Markers], SignalReader] | None = None
    #: what the user has approved; checked again just before the run starts
    trust: Trust = Trust()
    #: the agents that take over while this one is limited, in this order
    fallbacks: tuple[Launch, ...] = ()

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
        return sorted(n for n in self.env if n in known or looks_like_credential(n))

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
        return self.signals(markers) if own is None and self.signals is not None else own

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

    def command_line(
        self, prompt: str, prompt_file: Path, session: str | None = None, *, resume: bool = False
    ) -> CommandLine:
        """The command for a prompt; a UsageError if it cannot be delivered."""
        if self.launcher is not None:
            return self.launcher.command_line(prompt, prompt_file, session, resume=resume)
        data = prompt.encode("utf-8", "surrogateescape")
        base = self.base_for(session, resume=resume)
        if self.template is not None:
            if "{prompt}" in self.template:
                import shlex

                command = self.template.replace("{prompt}", shlex.quote(str(prompt_file)))
                return CommandLine([*base, command], None)
            return CommandLine([*base, self.template], data)
        flag = [self.invocation.prompt_flag] if self.invocation.prompt_flag else []
        match self.invocation.prompt:
            case Delivery.STDIN:
                return CommandLine(base, data)
            case Delivery.FILE:
                if any("{prompt_file}" in a for a in base):
                    return CommandLine([a.replace("{prompt_file}", str(prompt_file)) for a in base], None)
                return CommandLine([*base, *flag, str(prompt_file)], None)
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
                return CommandLine([*base, *flag, prompt], None)

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
