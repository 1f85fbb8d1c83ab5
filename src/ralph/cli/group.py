"""The click group of all commands; a command's module is imported only when the command is used."""

from __future__ import annotations

import importlib
import io
import sys

import click

from ralph import __version__

#: Under each heading of `ralph --help`: a command, its module and what it does.
_SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Run an agent": {
        "run": ("run_command", "Run an agent in a loop until the job is done."),
        "demo": ("demo", "Watch a loop work through a small task list; no agent needed."),
    },
    "Set up a project": {
        "init": ("init", "Create a first ralph.yml and PROMPT.md."),
        "config": ("config", "Show the effective settings and where each value comes from."),
        "trust": ("trust", "Allow this repository's own commands and scripts to run."),
        "agents": ("agents", "List the supported agents and which are installed."),
        "doctor": ("doctor", "Check whether a run can start here, and with which agents."),
    },
    "Inspect runs": {
        "runs": ("journal", "List the runs in this directory."),
        "show": ("journal", "Show a run as it appeared on the screen."),
        "tail": ("journal", "Show the last events of a run; -f follows it."),
    },
    "Control a running loop": {
        "stop": ("control", "Stop a run after the current iteration."),
        "pause": ("control", "Pause a run after the current iteration."),
        "resume": ("control", "Resume a paused run."),
        "steer": ("control", "Add a note to the next prompt of a run."),
    },
    "Work with other tools": {
        "as-claude": ("as_claude", "Emulate Claude Code with any agent."),
        "replay": ("replay", "Show how ralph reads and judges recorded output."),
    },
}
_COMMANDS = {name: entry for section in _SECTIONS.values() for name, entry in section.items()}


class LazyGroup(click.Group):
    """Imports only the module of the command that was given."""

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
            raise click.UsageError(f"There is no command '{args[0]}'{hint}; `ralph --help` lists all commands.", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Takes the summaries from the table, so that no command has to be imported."""
        width = max(len(name) for name in _COMMANDS)
        for heading, commands in _SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), summary) for name, (_, summary) in commands.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", message="ralph %(version)s")
def ralph() -> None:
    """Run any coding agent in a loop, with a fresh context each time, until the job is really done.

    \b
    Examples:
      ralph demo                        watch how it works; no agent needed
      ralph run -p "Fix the tests" 10   run the agent you have, at most 10 times
      ralph show                        see what happened
    """


def invoke() -> tuple[object, str]:
    """Runs the command line; returns the exit code and click's error message, if there is one.

    Click's own `main` is not used: it handles a closed pipe itself, with the exit code of a failed run.
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
        message = io.StringIO()
        _clear(error).show(message)
        return 64, message.getvalue().removesuffix("\n")
    except click.Abort:
        return 130, ""


def _clear(error: click.ClickException) -> click.ClickException:
    """With a better suggestion: click's own are far-fetched (--confirmations for --max-iterations)."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return error
    from ralph.cli.options import suggestion

    name = error.option_name
    return click.NoSuchOption(name, f"There is no option '{name}'{suggestion(name, error.ctx.command)}.", ctx=error.ctx)
