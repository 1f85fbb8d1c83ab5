"""`ralph agents`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from ralph.cli.echo import echo, echo_json

if TYPE_CHECKING:
    from ralph.agents.survey import Row
    from ralph.launching.launch import Launch

_COLUMNS = ("thinking", "tools", "usage", "cost", "session", "resume", "tool_list", "model")
_HEADS = ("think", "tools", "usage", "cost", "session", "resume", "allow-list", "model")


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

    launch, driver_lines = _driver()
    rows = [*survey(), *_driver_rows(launch)]
    for warning in registry.warnings():
        echo(f"warning: {warning}", err=True)
    if as_json:
        for row in rows:
            echo_json(row)
        return
    echo("\n".join([*_table(rows), "", *_own_agents(rows), *driver_lines, *_how_to_get(rows)]))


def _driver() -> tuple[Launch | None, list[str]]:
    """The platform driver that a run would use here, if the project has one, and what to print about it."""
    from pathlib import Path

    from ralph.dialects.driver.locate import all_drivers

    workdir = Path.cwd()
    if not all_drivers(workdir):
        return None, []
    from ralph.dialects.driver.listing import lines
    from ralph.errors import UsageError
    from ralph.planning.approvals import items_to_approve
    from ralph.planning.prepare import prepare_launch
    from ralph.planning.settle import settle
    from ralph.trust.approval import from_environment

    try:
        settled = settle({}, None, from_environment(os.environ))
        workdir, wanted = settled.workdir, items_to_approve(settled.resolved, settled.workdir)
        launch = prepare_launch(settled.resolved, workdir, settled.trust.recalling(wanted))
    except UsageError as error:
        return None, [*lines(workdir, None), f"The project's driver cannot be used: {error}"]
    return launch, lines(workdir, launch)


def _driver_rows(launch: Launch | None) -> list[Row]:
    if launch is None:
        return []
    from ralph.dialects.driver.listing import row

    found = row(launch)
    return [] if found is None else [found]


def _table(rows: list[Row]) -> list[str]:
    lines = [f"{'agent':<12} {'installed':<14} {'prompt by':<9} {' '.join(_HEADS)}"]
    for row in rows:
        installed = "-" if row.path is None else (row.version or "yes") if row.works else "not working"
        marks = " ".join(
            ("yes" if getattr(row, name) else "-").ljust(len(head)) for name, head in zip(_COLUMNS, _HEADS, strict=True)
        )
        lines.append(f"{row.name:<12} {installed:<14} {row.prompt:<9} {marks}".rstrip())
    return lines


def _own_agents(rows: list[Row]) -> list[str]:
    """Where the agents that the user added are defined."""
    return [
        f"{row.name} is your own agent: {row.file}{' (replaces the built-in one)' if row.replaces else ''}"
        for row in rows
        if row.file is not None
    ]


def _how_to_get(rows: list[Row]) -> list[str]:
    lines = ["To run any other program: --agent-cmd 'COMMAND', or `agent: custom` in ralph.yml."]
    missing = [row for row in rows if row.path is None and row.install]
    if missing:
        lines.append("To install an agent:")
        lines += [f"  {row.name:<12} {row.install}   {row.link}".rstrip() for row in missing]
    return lines
