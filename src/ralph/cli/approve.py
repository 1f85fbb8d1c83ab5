"""Asks at the terminal whether a repository may run its own code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ralph.cli.echo import echo
from ralph.errors import RunError
from ralph.trust import describe, store
from ralph.trust.approval import Trust, TrustError

if TYPE_CHECKING:
    from ralph.trust.items import Item


def approve(trust: Trust, wanted: list[Item]) -> Trust:
    """Returns a trust that covers all of `wanted`: approved earlier, or now at the terminal. Otherwise a TrustError."""
    trust = trust.recalling(wanted)
    missing = trust.missing(wanted)
    if not missing:
        return trust
    if not (sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()):
        raise TrustError(describe.refusal(missing))
    echo(f"This repository would {describe.what_for(missing)}:", err=True)
    echo("\n".join(describe.listed(missing)), err=True)
    if not _confirmed():
        raise TrustError("you did not approve it, so nothing was run")
    try:
        store.remember(missing)
    except RunError as error:
        echo(f"ralph: {error}", err=True)  # the approval still counts for this run
    return trust.approving(missing)


def _confirmed() -> bool:
    import click  # late: most runs ask nothing

    try:
        return click.confirm("Approve this?", default=False, err=True)
    except click.Abort:
        raise KeyboardInterrupt from None
