"""`ralph trust`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ralph.cli.echo import echo
from ralph.planning.approvals import items_to_approve, looser_settings
from ralph.planning.settle import settle, working_directory
from ralph.trust import describe, store
from ralph.trust.approval import Trust, TrustError, required

if TYPE_CHECKING:
    from ralph.trust.items import Item


@click.command("trust", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-c", "--config", "config_file", metavar="FILE", help="Use this ralph.yml instead of the nearest one.")
@click.option("--dry-run", is_flag=True, help="Show what would be allowed, without allowing it.")
@click.option("--list", "show_all", is_flag=True, help="List every directory in which you allowed something.")
@click.option("--remove", is_flag=True, help="Withdraw the approval for this directory, or for DIRECTORY.")
@click.argument("directory", required=False)
def trust_command(
    config_file: str | None, dry_run: bool, show_all: bool, remove: bool, directory: str | None
) -> int | None:
    """Allow this repository's own commands and scripts to run.

    Shows what `ralph run` would execute, and allows it as it is now. If any of it changes, ralph asks again. What you
    type yourself, set in the environment or keep in your own ~/.config/ralph/ralph.yml needs no approval.
    """
    if show_all:
        return _list()
    workdir = working_directory(directory)
    if remove:
        return _remove(workdir)
    # Without a directory on the command line, the repository's own `cwd` setting applies, as it does for a run.
    wanted = _wanted({"cwd": str(workdir)} if directory else {}, config_file)
    if not wanted:
        echo("There is nothing to approve: `ralph run` would not run any of this repository's own code.")
        return 0
    missing = Trust().recalling(wanted).missing(wanted)
    echo("`ralph run` would run or use this, which comes from the repository:")
    echo("\n".join(describe.listed(wanted)))
    if not missing:
        echo("You have already approved all of it.")
    elif dry_run:
        echo("Not approved yet. To approve it as it is now: ralph trust")
    else:
        store.remember(wanted)
        echo("Approved until it changes. To withdraw the approval: ralph trust --remove")
    return 0


def _wanted(flags: dict[str, Any], config_file: str | None) -> list[Item]:
    """Everything that needs approval, found without running any of it."""
    found: list[Item] = []

    def permit(trust: Trust, wanted: list[Item]) -> Trust:
        found.extend(wanted)
        return required(trust, wanted)

    try:
        settled = settle(flags, config_file, Trust(), permit)
    except TrustError:
        return found
    found += items_to_approve(settled.resolved, settled.workdir)
    return list({item.key: item for item in [*found, *looser_settings(settled.resolved)]}.values())


def _list() -> int:
    records = store.everything()
    if not records:
        echo("You have not approved anything yet.")
    for record in records:
        deleted = "" if Path(record.directory).is_dir() else "  (no longer exists)"
        echo(f"{record.directory}{deleted}")
        for what in sorted(record.allowed):
            echo(f"  {what}")
    return 0


def _remove(workdir: Path) -> int:
    """Withdraws the approval for this directory, and for the directory above that has the ralph.yml."""
    from ralph.config.yamlfile import find_upward

    above = find_upward(workdir)
    removed = [root for root in {workdir, above.parent if above else workdir} if store.forget(root)]
    echo(
        "\n".join(f"Removed your approval for {root}." for root in sorted(removed))
        or f"You had not approved anything in {workdir}."
    )
    return 0
