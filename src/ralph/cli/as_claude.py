"""`ralph as-claude`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from ralph.cli.echo import echo
from ralph.errors import RalphError, UsageError

if TYPE_CHECKING:
    from ralph.as_claude.adjust import Adjusted
    from ralph.as_claude.flags import Asked
    from ralph.launching.launch import Launch

#: Set in the agent's environment: an agent that is `ralph as-claude` itself would start itself forever.
_INSIDE = "RALPH_AS_CLAUDE"
_SANDBOXES = ("danger-full-access", "workspace-write", "read-only")
#: How the names of Claude's models begin.
_CLAUDE_MODELS = ("opus", "sonnet", "haiku", "claude", "opusplan", "default")


class _RawCommand(click.Command):
    """Leaves the command line alone, except for --help: Claude's rules for it are not click's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ours = args[: args.index("--")] if "--" in args else args
        return super().parse_args(ctx, args if "--help" in ours else ["--", *args])


@click.command(
    "as-claude",
    cls=_RawCommand,
    context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]},
    options_metavar="[--agent NAME] [--model NAME] [-p PROMPT]",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[CLAUDE_FLAGS]...")
def as_claude_command(arguments: tuple[str, ...]) -> int:
    """Emulate Claude Code with any agent.

    For tools that can only drive Claude Code: runs the agent once and writes stream-json. The prompt comes from -p or
    stdin. --output-format is stream-json [default], json or text. --effort, --resume, --continue and
    --append-system-prompt are passed on to the agent. A message on stderr lists the flags that it does not support.

    \b
    Examples:
      ralph as-claude --agent codex -p "Fix the tests"
      echo "Fix the tests" | ralph as-claude --agent gemini --print
      ralph as-claude --install ~/bin/codex-as-claude --agent codex

    --install PATH writes a program that runs this command with the other flags, for tools that accept only the path of
    a program.

    The agent comes from --agent, RALPH_AGENT or ralph.yml, or else is the first one installed. The model comes from
    --model, unless that names one of Claude's, or from the agent's own variable (CODEX_MODEL, GEMINI_MODEL, …).
    CODEX_SANDBOX sets Codex's sandbox [default: danger-full-access]; CODEX_VERBOSE=1 also shows its commands.

    The exit code is the agent's own, and never 0 after an error.
    """
    from ralph.as_claude import flags, once, writer

    asked = flags.parse(list(arguments))
    if asked.install is not None:
        from ralph.as_claude.install import install

        echo(f"Wrote {install(asked.install, flags.installed(list(arguments)))}")
        return 0
    try:
        prompt = _prompt(asked)
        adjusted = _adjusted(_launch(asked), asked)
        if adjusted.launch.agent != "claude":
            prompt = _with_instructions(asked, prompt)
        return once.run(adjusted, prompt, asked, verbose=_switch("CODEX_VERBOSE"))
    except RalphError as error:
        if asked.format is not flags.Format.TEXT:
            once.Out().write(writer.line(writer.failure(str(error))))
        raise


def _prompt(asked: Asked) -> str:
    if asked.prompt is not None:
        return os.fsencode(asked.prompt).decode("utf-8", "surrogateescape")
    text = "" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    if not text.strip():
        words = next((flag for flag in asked.others if len(flag.values) > 1), None)
        hint = f".\n  {words.name} takes all words up to the next flag: put the prompt after -p" if words else ""
        raise UsageError(f"there is no prompt: give one with -p, or on stdin{hint}")
    return text


def _with_instructions(asked: Asked, prompt: str) -> str:
    """The prompt after the instructions for the system prompt: every agent reads them there."""
    from pathlib import Path

    from ralph.system import files

    parts = []
    for text, is_file in asked.system:
        try:
            parts.append(files.read_text(Path(text), "surrogateescape") if is_file else text)
        except OSError as error:
            raise UsageError(f"cannot read the system prompt {text}: {error.strerror}") from error
    return "\n\n".join([*parts, prompt])


def _adjusted(launch: Launch, asked: Asked) -> Adjusted:
    """The launch as the flags ask for it. Says what this agent cannot do."""
    from ralph.as_claude.adjust import adjust

    adjusted = adjust(launch, asked)
    if adjusted.ignored:
        echo(f"ralph as-claude: {launch.title} does not support, so ignored: {', '.join(adjusted.ignored)}", err=True)
    return adjusted


def _launch(asked: Asked) -> Launch:
    import msgspec

    from ralph.as_claude.adjust import with_sandbox
    from ralph.config.layers import resolve
    from ralph.config.settings import HOSTED
    from ralph.planning.approvals import items_to_approve, of_config
    from ralph.planning.prepare import prepare_launch
    from ralph.planning.settle import working_directory
    from ralph.trust.approval import from_environment, required

    workdir = working_directory(None)
    given: dict[str, Any] = {"agent": asked.agent} if asked.agent else {}
    # Only the agent and its deadlines matter here. The settings of another convention could lead back to this command.
    required(from_environment(os.environ), of_config(workdir))
    resolved = resolve(workdir, given, environ=os.environ)
    cleared: dict[str, Any] = dict.fromkeys(HOSTED) | {
        "plan": None,
        "continue_session": False,
        "allowed_tools": (),
        "verify": (),
    }
    if asked.agent:  # settings in a file are for the agent named in that file
        cleared |= {"command": None, "agent_cmd": None, "model": None, "transcript": "auto"}
    settings = msgspec.structs.replace(resolved.settings, **cleared)
    model = _model(asked, settings.agent, settings.model)
    resolved = msgspec.structs.replace(resolved, settings=msgspec.structs.replace(settings, model=model))
    trust = required(from_environment(os.environ), items_to_approve(resolved, workdir))
    launch = prepare_launch(resolved, workdir, trust)
    if model is None and (named := os.environ.get(_variable(launch.agent))):
        again = msgspec.structs.replace(resolved.settings, model=named)
        launch = prepare_launch(msgspec.structs.replace(resolved, settings=again), workdir, trust)
    if launch.agent == "claude" and os.environ.get(_INSIDE):
        raise UsageError("the agent 'claude' is `ralph as-claude` itself here: choose another agent with --agent")
    if launch.agent == "codex" and (mode := os.environ.get("CODEX_SANDBOX")):
        if mode not in _SANDBOXES:
            raise UsageError(f"CODEX_SANDBOX: expected one of {', '.join(_SANDBOXES)}, not '{mode}'")
        launch = launch if mode == _SANDBOXES[0] else with_sandbox(launch, mode)
    return msgspec.structs.replace(launch, env=launch.env | {_INSIDE: "1"})


def _model(asked: Asked, agent: str, configured: str | None) -> str | None:
    """The flag, then the agent's own variable. Another agent does not know Claude's models, so they are ignored."""
    named = asked.model
    if named and agent != "claude" and named.startswith(_CLAUDE_MODELS):
        echo(f"ralph as-claude: ignoring --model {named}, a Claude model: the agent uses its own model", err=True)
        named = None
    return named or (os.environ.get(_variable(agent)) if agent != "auto" else None) or configured


def _variable(agent: str) -> str:
    return f"{agent.upper().replace('-', '_')}_MODEL"


def _switch(variable: str) -> bool:
    value = os.environ.get(variable, "0")
    if value not in ("", "0", "1"):
        echo(f"ralph as-claude: {variable} must be 0 or 1, not '{value}'; using 0", err=True)
    return value == "1"
