"""Running a Claude-compatible provider: `<claude_command> <claude_args…> -p <prompt>`."""

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
from ralph.dialects.provider.config import layer
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

#: A longer prompt comes on stdin.
LONG = 100 << 10
_EFFORTS = frozenset({"minimal", "low", "medium", "high", "xhigh", "max"})
_KEY = "ANTHROPIC_API_KEY"


class _Signals(Launcher):
    """What all agents of that convention share: its signals."""

    def __init__(self, settings: Settings, follows: Path | None) -> None:
        self._settings = settings
        self._follows = follows

    def reader(self) -> RalphexReader:
        path = self._follows
        objection = None if path is None else lambda: planfile.still_open(path)
        return RalphexReader(objection, Markers.configured(self._settings.completion_promise))


class ProviderLauncher(_Signals):
    def __init__(
        self, base: list[str], settings: Settings, transcript: str, follows: Path | None, *, key_kept: bool
    ) -> None:
        super().__init__(settings, follows)
        self._base = base
        self._transcript = transcript
        self._key_kept = key_kept
        self._flags = model_flags(settings.model)
        self.delivery = {
            ClaudePrompt.AUTO: f"as one argument after -p, on stdin if it is longer than {LONG >> 10} KiB",
            ClaudePrompt.ARG: "as one argument after -p",
            ClaudePrompt.STDIN: "on stdin",
        }[settings.claude_prompt]

    def command_line(self, prompt: str, prompt_file: Path, session: str | None, *, resume: bool) -> CommandLine:
        data = prompt.encode("utf-8", "surrogateescape")
        argv = [*self._base, *self._flags]
        mode = self._settings.claude_prompt
        if mode is ClaudePrompt.AUTO and (len(data) > LONG or "\0" in prompt):
            mode = ClaudePrompt.STDIN
        if mode is ClaudePrompt.STDIN:
            return CommandLine([*argv, "--print"], data)
        if prompt.startswith("-"):
            prompt = "\n" + prompt  # Claude's own -p is a switch: it would take this for a flag
        if "\0" in prompt:
            raise UsageError("the prompt holds a NUL byte, which no argument can: set claude_prompt to stdin")
        if len(data) >= MAX_ARGUMENT:
            raise UsageError(
                f"the prompt is {len(data):,} bytes long, and an argument may have {MAX_ARGUMENT:,}: "
                "set claude_prompt to stdin"
            )
        return CommandLine([*argv, "-p", prompt], None)

    def adapter(self, prompt: str) -> TranscriptAdapter:
        inner = transcripts.create(self._transcript, prompt=prompt)
        return ProviderAdapter(inner, patterns_of(self._settings), self._settings.wait_on_limit)

    def help_for(self, outcome: str) -> str | None:
        if outcome == "auth" and self._key_kept:
            return f"{_KEY} is set, but was kept from it: preserve_anthropic_api_key = true lets it through"
        return None


class FollowedPlan(_Signals):
    """An agent that ralph knows, following a plan of that convention."""

    def __init__(self, bare: Launch, follows: Path) -> None:
        super().__init__(bare.settings, follows)
        self._bare = bare
        self.delivery = bare.delivery
        self.resumes = bare.session_mode is SessionMode.RESUME

    def command_line(self, prompt: str, prompt_file: Path, session: str | None, *, resume: bool) -> CommandLine:
        return self._bare.command_line(prompt, prompt_file, session, resume=resume)


def follow(bare: Launch) -> Launch:
    """The same run, ended by the signals that the plan's prompt speaks of."""
    path = planfile.locate(bare.resolved, bare.workdir)
    return msgspec.structs.replace(bare, launcher=FollowedPlan(bare, path), dialect=_said(bare.resolved))


def launch(resolved: Resolved, workdir: Path, trust: Trust) -> Launch:  # noqa: ARG001
    resolved = _without_unheard(resolved)
    settings = resolved.settings
    base = _command(resolved, workdir)
    nested = registry.get("claude")
    environment = dict(resolved.environ)
    for variable in nested.unset_env:
        environment.pop(variable, None)
    key_kept = not settings.preserve_anthropic_api_key and environment.pop(_KEY, None) is not None
    environment = nested.invocation[0].env | environment
    name, why = transcripts.select(settings.transcript, "claude")
    follows = planfile.locate(resolved, workdir) if follows_plan(resolved) else None
    argv = [*base, *_arguments(resolved)]
    return Launch(
        resolved,
        workdir,
        Path(base[0]).name,
        "a Claude-compatible provider",
        None,
        argv,
        Invocation((), Delivery.ARGUMENT, "-p", env=dict(nested.invocation[0].env)),
        environment,
        name,
        "what that convention speaks" if why == "what this agent writes" else why,
        launcher=ProviderLauncher(argv, settings, name, follows, key_kept=key_kept),
        dialect=_said(resolved),
    )


def _without_unheard(resolved: Resolved) -> Resolved:
    """Most wrappers drop flags that they do not know: a restriction must not be lost without a word."""
    for name, what in (("allowed_tools", "restrict its tools"), ("continue_session", "go on with a session")):
        if not getattr(resolved.settings, name):
            continue
        origin = resolved.origins[name]
        text = f"{origin} has no effect with claude_command: it is not known whether that program can {what}"
        if origin.startswith("-"):
            raise UsageError(f"{text}; put the flag that it takes into claude_args")
        resolved = resolved.warn(text)
    return resolved


def executables(found: Found, workdir: Path, environ: Mapping[str, str]) -> list[Path]:
    """The files of the repository that a run would execute: the command, where it is one of them."""
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
    """`opus`, `opus:high` or `:high`, as Claude takes them."""
    name, colon, effort = (model or "").rpartition(":")
    if not colon or effort not in _EFFORTS:
        name, effort = model or "", ""
    return [*(["--model", name] if name else []), *(["--effort", effort] if effort else [])]


def _command(resolved: Resolved, workdir: Path) -> list[str]:
    """The program, which may have arguments in it where the whole is no program."""
    command = (resolved.settings.claude_command or "").strip()
    origin = resolved.origins["claude_command"]
    if not command:
        raise UsageError(f"claude_command ({origin}) is empty: give it the program to run")
    base = resolved.bases.get("claude_command", workdir)
    whole = which(_expand(command, base))
    if whole is not None:
        return [whole]
    first, *rest = _words(command) or [command]
    program = which(_expand(first, base))
    if program is None:
        path = Path(_expand(first, base))
        why = "is not executable (chmod +x)" if "/" in first and path.is_file() else "was not found"
        hint = "\n  To run another agent: --agent NAME" if origin == "the convention's default" else ""
        raise UsageError(f"claude_command '{command}' ({origin}) {why}{hint}")
    return [program, *rest]


def _words(text: str) -> list[str]:
    """As a shell splits it; what no shell could split is one word for each blank."""
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
    """`./tool` and `scripts/tool` are in the project; `tool` is looked for in PATH."""
    expanded = os.path.expanduser(command)  # noqa: PTH111 - a bare name must stay one
    return str(base / expanded) if "/" in expanded and not expanded.startswith("/") else expanded


def _said(resolved: Resolved) -> str:
    return f"provider ({resolved.origins['claude_command']})"
