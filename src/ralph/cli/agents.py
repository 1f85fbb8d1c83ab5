"""`ralph agents`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from ralph.cli.echo import echo, echo_json

if TYPE_CHECKING:
    from ralph.launching.launch import Launch

_COLUMNS = ("thinking", "tools", "usage", "cost", "session", "resume", "tool_list", "model")
_HEADS = ("think", "tools", "usage", "cost", "session", "resume", "allow-list", "model")


def _driver() -> tuple[Launch | None, list[str]]:
    """The platform driver that a run would use here, if this project has any."""
    from pathlib import Path

    from ralph.dialects.driver.locate import all_drivers

    workdir = Path.cwd()
    if not all_drivers(workdir):
        return None, []
    from ralph.dialects.driver.listing import lines
    from ralph.errors import UsageError
    from ralph.planning.brought import brought
    from ralph.planning.prepare import prepare_launch
    from ralph.planning.settle import settle
    from ralph.trust.approval import from_environment

    try:
        settled = settle({}, None, from_environment(os.environ))
        workdir, wanted = settled.workdir, brought(settled.resolved, settled.workdir)
        launch = prepare_launch(settled.resolved, workdir, settled.trust.recalling(wanted))
    except UsageError as error:
        return None, [*lines(workdir, None), f"The project's driver cannot be used: {error}"]
    return launch, lines(workdir, launch)


@click.command("agents", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one agent per line.")
def agents_command(as_json: bool) -> None:
    """List the supported agents, what each can do, and which are installed.

    \b
    Columns:
      think, tools, usage, cost, session   reported in the agent's output
      resume                               --continue-session works
      allow-list                           --allowed-tools works
      model                                --model works
    """

    from ralph.agents import registry
    from ralph.agents.survey import survey

    rows = survey()
    launch, told = _driver()
    if launch is not None:
        from ralph.dialects.driver.listing import row as driver_row

        found_row = driver_row(launch)
        rows = [*rows, found_row] if found_row is not None else rows
    for warning in registry.warnings():
        echo(f"warning: {warning}", err=True)
    if as_json:
        for row in rows:
            echo_json(row)
        return
    echo(f"{'agent':<12} {'installed':<14} {'prompt by':<9} {' '.join(_HEADS)}")
    for row in rows:
        found = "-" if row.path is None else (row.version or "yes") if row.works else "does not answer"
        marks = " ".join(
            ("yes" if getattr(row, name) else "-").ljust(len(head)) for name, head in zip(_COLUMNS, _HEADS, strict=True)
        )
        echo(f"{row.name:<12} {found:<14} {row.prompt:<9} {marks}".rstrip())
    echo()
    for row in rows:
        if row.file is not None:
            instead = ", in place of the built-in one" if row.replaces else ""
            echo(f"{row.name} is yours: {row.file}{instead}")
    for line in told:
        echo(line)
    echo("Any other program: --agent-cmd 'COMMAND', or `agent: custom` in ralph.yml.")
    missing = [row for row in rows if row.path is None and row.install]
    if missing:
        echo("To get one of the others:")
        for row in missing:
            echo(f"  {row.name:<12} {row.install}   {row.link}".rstrip())
