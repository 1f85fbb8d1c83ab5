"""The command line: one module a command, imported only when that command is used."""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys

import click

from ralph.errors import SCARCE, RalphError

#: name, module, what it does in one line
_COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("run", "Run an agent in a loop until the work is done."),
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


#: The disk or the device behind our output has had enough.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})


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
@click.version_option(None, "-V", "--version", message="ralph %(version)s", package_name="ralph-loop")
def ralph() -> None:
    """Run any coding agent in a loop, with a fresh context each time, until the job is really done.

    \b
    ralph demo                          see how it works, without any agent
    ralph run -p "Fix the tests" 10     at most 10 iterations of the agent you have
    ralph show                          what happened
    """


def _invoke() -> object:
    """As click's `main`, which would answer a closed pipe itself, with the exit code of a failed run."""
    arguments = sys.argv[1:]
    with ralph.make_context("ralph", arguments) as context:
        try:
            return ralph.invoke(context)
        except click.exceptions.Exit as end:
            return end.exit_code


def _safe(text: str) -> str:
    """A message may quote a command line or a file, and these may hold a key."""
    from ralph.masking.masker import for_environment

    return for_environment().text(text)


def _crashed(error: Exception) -> int:
    if os.environ.get("RALPH_DEBUG"):
        raise error
    from ralph.cli.crash import report

    report(error)
    return 1


def main() -> None:
    """Runs a command; whatever goes wrong, the user reads a sentence and not a traceback."""
    try:
        code = _invoke()
        sys.stdout.flush()
    except click.exceptions.Exit as end:  # --help, --version
        code = end.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        code = 0
    except click.ClickException as error:
        said = io.StringIO()
        error.show(said)
        _say(_safe(said.getvalue().removesuffix("\n")))
        code = 64
    except RalphError as error:
        _say(_safe(f"ralph: {error}"))
        code = error.exit_code
    except (KeyboardInterrupt, click.Abort):
        code = 130
    except BrokenPipeError:
        # Whoever read our output has gone away; say nothing, not even at shutdown.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    except OSError as error:
        if error.errno in _FULL:
            _say(f"ralph: the output cannot be written: {error.strerror}")
            code = 1
        elif error.errno in SCARCE:
            _say(f"ralph: the system gives no more: {error.strerror}")
            code = 1
        else:
            code = _crashed(error)
    except MemoryError:
        _say("ralph: the memory is used up")
        code = 1
    except Exception as error:  # noqa: BLE001 - the top: a bug of ours is told in a sentence, its details are kept
        code = _crashed(error)
    _let_go()
    sys.exit(code if isinstance(code, int) else 0)


def _say(text: str) -> None:
    """On stderr, as far as there is somebody."""
    from ralph.cli.echo import echo

    try:
        echo(text, err=True)
    except OSError:
        pass  # the exit code says it as well


def _let_go() -> None:
    """What a stream that has gone away cannot take any more must not change the exit code at shutdown (to 120)."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
