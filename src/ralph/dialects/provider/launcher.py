"""Starts a Claude-compatible provider: `<claude_command> <claude_args…> -p <prompt>`."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ralph.agents import adapters as transcripts
from ralph.agents import registry
from ralph.agents.spec import MAX_ARGUMENT, Delivery, Invocation
from ralph.config.settings import ClaudePrompt
from ralph.dialects.detect import follows_plan
from ralph.dialects.provider import planfile
from ralph.dialects.provider.config import layer, model_and_effort
from ralph.dialects.provider.signals import RalphexReader
from ralph.dialects.provider.transcript import ProviderAdapter, patterns_of
from ralph.errors import UsageError
from ralph.judging.signals import Markers
from ralph.launching.launch import Launch
from ralph.launching.launcher import CommandLine, Launcher, SessionMode
from ralph.system.programs import which

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ralph.config.layers import Resolved
    from ralph.config.settings import Settings
    from ralph.dialects.detect import Found
    from ralph.transcripts.base import TranscriptAdapter
    from ralph.trust.approval import Trust

#: A longer prompt is passed on stdin.
MAX_PROMPT_ARGUMENT = 100 << 10
_KEY = "ANTHROPIC_API_KEY"


class _SignalLauncher(Launcher):
    """Reads the signals of this convention. `plan` is the plan that the run follows, if any."""

    def __init__(self, settings: Settings, plan: Path | None) -> None:
        self._settings = settings
        self._plan = plan

    def reader(self) -> RalphexReader:
        path = self._plan
        objection = None if path is None else lambda: planfile.still_open(path)
        return RalphexReader(objection, Markers.configured(self._settings.completion_promise))


class ProviderLauncher(_SignalLauncher):
    """Runs `base` with each prompt. `key_withheld`: the API key is set, but the provider does not get it."""

    def __init__(
        self, base: list[str], settings: Settings, transcript: str, plan: Path | None, *, key_withheld: bool
    ) -> None:
        super().__init__(settings, plan)
        self._base = base
        self._transcript = transcript
        self._key_withheld = key_withheld
        self._flags = model_flags(settings.model)
        self.delivery = {
            ClaudePrompt.AUTO: f"as one argument after -p, on stdin if longer than {MAX_PROMPT_ARGUMENT >> 10} KiB",
            ClaudePrompt.ARG: "as one argument after -p",
            ClaudePrompt.STDIN: "on stdin",
        }[settings.claude_prompt]

    def command_line(self, prompt: str, prompt_file: Path, session: str | None, *, resume: bool) -> CommandLine:
        data = prompt.encode("utf-8", "surrogateescape")
        argv = [*self._base, *self._flags]
        mode = self._settings.claude_prompt
        if mode is ClaudePrompt.AUTO and (len(data) > MAX_PROMPT_ARGUMENT or "\0" in prompt):
            mode = ClaudePrompt.STDIN
        if mode is ClaudePrompt.STDIN:
            return CommandLine([*argv, "--print"], data)
        if prompt.startswith("-"):
            prompt = "\n" + prompt  # -p takes no value in Claude, which would read this prompt as a flag
        if "\0" in prompt:
            raise UsageError("the prompt contains a NUL byte and cannot be an argument: set claude_prompt to stdin")
        if len(data) >= MAX_ARGUMENT:
            raise UsageError(
                f"the prompt is {len(data):,} bytes long, but the system limit for an argument is {MAX_ARGUMENT:,}: "
                "set claude_prompt to stdin"
            )
        return CommandLine([*argv, "-p", prompt], None)

    def adapter(self, prompt: str) -> TranscriptAdapter:
        inner = transcripts.create(self._transcript, prompt=prompt)
        return ProviderAdapter(inner, patterns_of(self._settings), self._settings.wait_on_limit)

    def help_for(self, outcome: str) -> str | None:
        if outcome == "auth" and self._key_withheld:
            return f"{_KEY} is set, but not passed on: to pass it on, set preserve_anthropic_api_key = true"
        return None


class PlanLauncher(_SignalLauncher):
    """Runs one of ralph's own agents on a plan of this convention."""

    def __init__(self, inner: Launch, plan: Path) -> None:
        super().__init__(inner.settings, plan)
        self._inner = inner
        self.delivery = inner.delivery
        self.resumes = inner.session_mode is SessionMode.RESUME

    def command_line(self, prompt: str, prompt_file: Path, session: str | None, *, resume: bool) -> CommandLine:
        return self._inner.command_line(prompt, prompt_file, session, resume=resume)


def follow(inner: Launch) -> Launch:
    """The same launch, but reading the signals that the plan's prompt asks for."""
    path = planfile.locate(inner.resolved, inner.workdir)
    return msgspec.structs.replace(inner, launcher=PlanLauncher(inner, path), dialect=_dialect(inner.resolved))


def launch(resolved: Resolved, workdir: Path, trust: Trust) -> Launch:  # noqa: ARG001
    """Starts the program in `claude_command` as if it were Claude."""
    resolved = _check(resolved)
    settings = resolved.settings
    base = _command(resolved, workdir)
    claude = registry.get("claude")
    environment = dict(resolved.environ)
    for variable in claude.unset_env:
        environment.pop(variable, None)
    key_withheld = not settings.preserve_anthropic_api_key and environment.pop(_KEY, None) is not None
    environment = claude.invocation[0].env | environment
    name, why = transcripts.select(settings.transcript, "claude")
    plan = planfile.locate(resolved, workdir) if follows_plan(resolved) else None
    argv = [*base, *_arguments(resolved)]
    return Launch(
        resolved,
        workdir,
        Path(base[0]).name,
        "a Claude-compatible provider",
        None,
        argv,
        Invocation((), Delivery.ARGUMENT, "-p", env=dict(claude.invocation[0].env)),
        environment,
        name,
        "the format of this convention" if settings.transcript == transcripts.AUTO else why,
        launcher=ProviderLauncher(argv, settings, name, plan, key_withheld=key_withheld),
        dialect=_dialect(resolved),
    )


def _check(resolved: Resolved) -> Resolved:
    """Reports settings that have no effect. Most wrappers ignore unknown flags, so a restriction would be lost."""
    for name, what in (("allowed_tools", "restrict its tools"), ("continue_session", "resume a session")):
        if not getattr(resolved.settings, name):
            continue
        origin = resolved.origins[name]
        text = f"{origin} has no effect with claude_command: ralph does not know whether that program can {what}"
        if origin.startswith("-"):
            raise UsageError(f"{text}; if it has a flag for this, put it in claude_args")
        resolved = resolved.warn(text)
    return resolved


def executables(found: Found, workdir: Path, environ: Mapping[str, str]) -> list[Path]:
    """The files of the repository that a run would execute: those that the command names."""
    values = layer(found, workdir, environ).values
    command = values.get("claude_command") or values.get("command")
    if not isinstance(command, str):
        return []
    words = [command, *_words(command)]
    paths = [Path(_expand(word, workdir)) for word in words if "/" in word]
    return [
        path for path in dict.fromkeys(paths) if path.is_file() and path.resolve().is_relative_to(workdir.resolve())
    ]


def model_flags(model: str | None) -> list[str]:
    """Claude's flags for `opus`, `opus:high` or `:high`."""
    name, effort = model_and_effort(model)
    return [*(["--model", name] if name else []), *(["--effort", effort] if effort else [])]


def _command(resolved: Resolved, workdir: Path) -> list[str]:
    """The program and its arguments. A `claude_command` with blanks may still be the path of one program."""
    command = (resolved.settings.claude_command or "").strip()
    origin = resolved.origins["claude_command"]
    if not command:
        raise UsageError(f"claude_command ({origin}) is empty: set it to the program to run")
    base = resolved.bases.get("claude_command", workdir)
    whole = which(_expand(command, base))
    if whole is not None:
        return [whole]
    first, *rest = _words(command) or [command]
    program = which(_expand(first, base))
    if program is None:
        path = Path(_expand(first, base))
        why = "is not executable (chmod +x)" if "/" in first and path.is_file() else "was not found"
        hint = "\n  To use another agent: --agent NAME" if origin == "the convention's default" else ""
        raise UsageError(f"claude_command '{command}' ({origin}) {why}{hint}")
    return [program, *rest]


def _words(text: str) -> list[str]:
    """Splits a command as a shell does, or at blanks if its quotes do not match."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _arguments(resolved: Resolved) -> list[str]:
    try:
        return shlex.split(resolved.settings.claude_args)
    except ValueError as error:
        raise UsageError(f"claude_args ({resolved.origins['claude_args']}): {error}") from None


def _expand(command: str, base: Path) -> str:
    """Makes `./tool` and `scripts/tool` absolute. A bare `tool` stays as it is, to be looked up in PATH."""
    expanded = os.path.expanduser(command)  # noqa: PTH111 - Path would turn ./tool into tool
    return str(base / expanded) if "/" in expanded and not expanded.startswith("/") else expanded


def _dialect(resolved: Resolved) -> str:
    return f"provider ({resolved.origins['claude_command']})"
