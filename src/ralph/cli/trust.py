"""`ralph trust`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ralph.cli.echo import echo
from ralph.trust import items as trust

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
    from ralph.cli.run import working_directory

    if show_all:
        return _list()
    workdir = working_directory(directory)
    if remove:
        return _remove(workdir)
    # Where it was not said where, the repository's own `cwd` counts, as it does for a run.
    wanted = _wanted({"cwd": str(workdir)} if directory else {}, config_file)
    if not wanted:
        echo("`ralph run` would execute nothing of this repository's own: there is nothing to allow.")
        return 0
    missing = trust.untrusted_by_record(wanted)
    echo("`ralph run` would execute or use this by the repository's word:")
    echo("\n".join(trust.listed(wanted)))
    if not missing:
        echo("All of it is trusted, as it is now.")
    elif dry_run:
        echo("`ralph trust` allows it, as it is now.")
    else:
        trust.remember(wanted)
        echo("It is trusted now, until it changes. `ralph trust --remove` takes that back.")
    return 0


def _wanted(flags: dict[str, Any], config_file: str | None) -> list[Item]:
    """All of it, without running any of it."""
    from ralph.cli.run import settle

    found: list[Item] = []

    def stop(items: list[Item]) -> None:
        found.extend(items)
        raise trust.TrustError("")

    try:
        resolved, place = settle(flags, config_file, stop)
    except trust.TrustError:
        return found
    return trust.items(resolved, place)


def _list() -> int:
    from ralph.trust import store as trust_store

    records = trust_store.everything()
    if not records:
        echo("Nothing is trusted yet.")
    for record in records:
        gone = "" if Path(record.directory).is_dir() else "  (not there any more)"
        echo(f"{record.directory}{gone}")
        for what in sorted(record.allowed):
            echo(f"  {what}")
    return 0


def _remove(workdir: Path) -> int:
    """Also what stands further up, if that is where the ralph.yml is."""
    from ralph.config.yamlfile import find_upward
    from ralph.trust import store as trust_store

    above = find_upward(workdir)
    forgotten = [root for root in {workdir, above.parent if above else workdir} if trust_store.forget(root)]
    echo(
        "\n".join(f"Nothing in {root} is trusted any more." for root in sorted(forgotten))
        or f"Nothing was trusted in {workdir}."
    )
    return 0
