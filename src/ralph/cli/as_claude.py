"""`ralph as-claude`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from ralph.cli.echo import echo
from ralph.errors import RalphError, UsageError

if TYPE_CHECKING:
    from ralph.as_claude.flags import Asked
    from ralph.launching.launch import Launch

#: Set in the agent's environment: an agent that is `ralph as-claude` itself would start itself forever.
_INSIDE = "RALPH_AS_CLAUDE"
_SANDBOXES = ("danger-full-access", "workspace-write", "read-only")
#: How the names of Claude's models begin.
_CLAUDE_MODELS = ("opus", "sonnet", "haiku", "claude", "opusplan", "default")


@click.command(
    "as-claude",
    context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]},
    options_metavar="[--agent NAME] [--model NAME] [-p PROMPT]",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[CLAUDE_FLAGS]...")
def as_claude_command(arguments: tuple[str, ...]) -> int:
    """Emulate Claude Code with any agent.

    For tools that can only drive Claude Code: runs the agent once and writes stream-json. The prompt comes from -p or
    stdin. --output-format is stream-json [default], json or text. Claude Code's other flags are ignored.

    \b
    Examples:
      ralph as-claude --agent codex -p "Fix the tests"
      echo "Fix the tests" | ralph as-claude --agent gemini --print

    The agent comes from --agent, RALPH_AGENT or ralph.yml, or else is the first one installed. The model comes from
    --model, unless that names one of Claude's, or from the agent's own variable (CODEX_MODEL, GEMINI_MODEL, …).
    CODEX_SANDBOX sets Codex's sandbox [default: danger-full-access]; CODEX_VERBOSE=1 also shows its commands.

    The exit code is the agent's own, and never 0 after an error.
    """
    from ralph.as_claude import flags, once, writer

    asked = flags.parse(list(arguments))
    try:
        prompt = _prompt(asked)
        launch = _launch(asked)
        return once.run(launch, prompt, asked.format, verbose=_switch("CODEX_VERBOSE"))
    except RalphError as error:
        if asked.format is not flags.Format.TEXT:
            once.Out().write(writer.line(writer.failure(str(error))))
        raise


def _prompt(asked: Asked) -> str:
    if asked.prompt is not None:
        return os.fsencode(asked.prompt).decode("utf-8", "surrogateescape")
    text = "" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    if not text.strip():
        raise UsageError("there is no prompt: give one with -p, or on stdin")
    return text


def _launch(asked: Asked) -> Launch:
    import msgspec

    from ralph.as_claude.once import with_sandbox
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
