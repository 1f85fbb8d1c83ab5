"""`ralph run` as a click command."""

from __future__ import annotations

from typing import Any

import click

from ralph.cli.options import GroupedCommand, given, setting_options
from ralph.cli.run import run
from ralph.config.settings import RETIRED


def _retired(_context: click.Context, parameter: click.Parameter, value: bool | None) -> None:
    """Says what has become of a flag that existed once."""
    if value is not None:
        click.echo(f"warning: {parameter.opts[0]}: {RETIRED[parameter.name or '']}", err=True)


@click.command("run", cls=GroupedCommand, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("max_iterations", required=False)
@setting_options
@click.option("-c", "--config", "config_file", metavar="FILE", help="Use this ralph.yml instead of the nearest one.")
@click.option("--dry-run", is_flag=True, help="Show exactly what would run, without running it.")
@click.option("--trust", is_flag=True, help="Allow this repository's own commands and scripts for this run.")
@click.option(
    "--resume",
    metavar="[RUN]",
    is_flag=False,
    flag_value="latest",
    help="Resume a run that was killed, was stopped or reached a limit: the latest, or RUN.",
)
@click.option(
    "--verify-strict/--no-verify-strict", is_flag=True, default=None, hidden=True, expose_value=False, callback=_retired
)
def run_command(config_file: str | None, dry_run: bool, trust: bool, resume: str | None, **values: Any) -> int:
    """Run an agent in a loop until the job is done.

    The loop runs at most MAX_ITERATIONS times [default: 100]. The prompt comes from -p, -P or PROMPT.md. The agent
    is the one you name with --agent or --agent-cmd, or else the first one installed.

    \b
    Examples:
      ralph run 20                             PROMPT.md, with the agent you have
      ralph run -p "Fix the tests" --verify "make test"
      ralph run --agent codex --max-cost 5 --max-runtime 8h
      ralph run --agent-cmd "my-agent --yes"   any command; the prompt is on stdin
      ralph run 50 --resume                    resume the latest run, up to 50

    You can also set options in ralph.yml (max_cost: 5) or in the environment (RALPH_MAX_COST=5); `ralph config` shows
    the effective settings.

    Exit codes: 0 complete, 1 failed, 2 limit reached, 3 replan requested, 4 stuck, 5 needs a person, 64 usage
    error, 130 interrupted, 143 terminated.
    """
    return run(given(values), config_file=config_file, dry_run=dry_run, trust=trust, resume=resume)
