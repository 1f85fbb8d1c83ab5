"""Every command, as click knows them: one module a command, imported only when that command is used."""

from __future__ import annotations

import importlib
import io
import sys

import click

from ralph import __version__

#: name, module, what it does in one line
_COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("run_command", "Run an agent in a loop until the work is done."),
    "demo": ("demo", "Watch a loop finish a small task list, without any agent or key."),
    "agents": ("agents", "Show the agents that ralph knows and which are installed."),
    "doctor": ("doctor", "Check whether a run could start here, and with which agents."),
    "init": ("init", "Write a first ralph.yml and PROMPT.md."),
    "config": ("config", "Show every setting and where it came from."),
    "trust": ("trust", "Say that this repository's own commands and scripts may be run."),
    "runs": ("journal", "List the runs of this directory."),
    "show": ("journal", "Show a run again."),
    "tail": ("journal", "Show the end of a run; -f follows it."),
    "stop": ("control", "End a run from another terminal."),
    "pause": ("control", "Hold a run between two iterations."),
    "resume": ("control", "Let a paused run go on."),
    "steer": ("control", "Put a note in front of the next prompt of a run."),
    "as-claude": ("as_claude", "Be Claude for a tool that can only drive Claude, with any agent."),
    "replay": ("replay", "Read recorded output through a transcript adapter."),
}


class LazyGroup(click.Group):
    """Loads the module of the command that is asked for, and no other."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"ralph.cli.{_COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name.replace('-', '_')}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            from ralph.errors import nearest

            hint = nearest(args[0], _COMMANDS)
            raise click.UsageError(f"there is no command '{args[0]}'{hint}; `ralph --help` lists them", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Without importing every command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in _COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", message="ralph %(version)s")
def ralph() -> None:
    """Run any coding agent in a loop, with a fresh context each time, until the job is really done.

    \b
    ralph demo                          see how it works, without any agent
    ralph run -p "Fix the tests" 10     at most 10 iterations of the agent you have
    ralph show                          what happened
    """


def invoke() -> tuple[object, str]:
    """What the command line asks for: its exit code, and what click has to say against it.

    As click's `main`, which would answer a closed pipe itself, with the exit code of a failed run.
    """
    arguments = sys.argv[1:]
    try:
        with ralph.make_context("ralph", arguments) as context:
            return ralph.invoke(context), ""
    except click.exceptions.Exit as end:  # --help, --version
        return end.exit_code, ""
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 0, ""
    except click.ClickException as error:
        said = io.StringIO()
        error.show(said)
        return 64, said.getvalue().removesuffix("\n")
    except click.Abort:
        return 130, ""
