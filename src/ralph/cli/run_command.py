"""`ralph run`, as click knows it."""

from __future__ import annotations

from typing import Any

import click

from ralph.cli.options import GroupedCommand, given, setting_options
from ralph.cli.run import run


@click.command("run", cls=GroupedCommand, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("max_iterations", required=False)
@setting_options
@click.option("-c", "--config", "config_file", metavar="FILE", help="This ralph.yml, instead of the nearest one.")
@click.option("--dry-run", is_flag=True, help="Show exactly what would be run, and run nothing.")
@click.option("--trust", is_flag=True, help="Run this repository's own commands and scripts, this time.")
@click.option(
    "--resume",
    metavar="[RUN]",
    is_flag=False,
    flag_value="latest",
    help="Go on with a run that was killed, stopped or ended at a limit: the newest, or RUN.",
)
def run_command(config_file: str | None, dry_run: bool, trust: bool, resume: str | None, **values: Any) -> int:
    """Run an agent in a loop until it is done, at most MAX_ITERATIONS times [default: 100].

    The prompt is -p, -P or PROMPT.md. The agent is --agent, --agent-cmd, or the first one that is installed.

    \b
    ralph run 20                              PROMPT.md, the agent you have
    ralph run -p "Fix the tests" --verify "make test"
    ralph run --agent codex --max-cost 5 --max-runtime 8h
    ralph run --agent-cmd "my-agent --yes"    any command; the prompt on stdin
    ralph run 50 --resume                     go on with the last run, to 50

    What a flag sets, ralph.yml can set (max_cost: 5) and so can the environment (RALPH_MAX_COST=5); `ralph config`
    shows what holds.

    Exit codes: 0 complete, 1 failed, 2 a limit was reached, 3 replan, 4 stuck, 5 needs a person, 64 wrong
    usage, 130 interrupted, 143 terminated.
    """
    return run(given(values), config_file=config_file, dry_run=dry_run, trust=trust, resume=resume)
