"""The question whether a repository is trusted, which `ralph run` asks at a terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from ralph.cli.echo import echo
from ralph.errors import RunError
from ralph.trust import items as trust

if TYPE_CHECKING:
    from ralph.trust.items import Item


def ask(wanted: list[Item]) -> None:
    """Comes back if all of it may be run: it was allowed, or is allowed now, at the terminal."""
    missing = trust.untrusted(wanted)
    if not missing:
        return
    if not (sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()):
        raise trust.TrustError(trust.refusal(missing))
    echo(f"This repository would {trust.what_for(missing)}:", err=True)
    echo("\n".join(trust.listed(missing)), err=True)
    if not _confirmed():
        raise trust.TrustError("not trusted: nothing was run")
    try:
        trust.remember(missing)
    except RunError as error:
        echo(f"ralph: {error}", err=True)
        os.environ[trust.VARIABLE] = "1"


def _confirmed() -> bool:
    import click  # most runs have nothing to ask

    try:
        return click.confirm("Do you trust it, as it is now?", default=False, err=True)
    except click.Abort:
        raise KeyboardInterrupt from None
