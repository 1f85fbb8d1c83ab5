"""What may run. Trust is computed once, passed on as a value, and checked again just before use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ralph.errors import UsageError
from ralph.trust import describe, store

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from ralph.trust.items import Item

#: `1` approves everything for one run; no file can set that.
VARIABLE = "RALPH_TRUST"


class TrustError(UsageError):
    """The repository would run something that has not been approved."""


class Trust(msgspec.Struct, frozen=True):
    """What the user has approved for a run. An approval is for one content: it does not cover a changed file."""

    #: `--trust`, or RALPH_TRUST in the environment
    everything: bool = False
    approved: frozenset[tuple[Path, str, str]] = frozenset()

    def missing(self, wanted: Iterable[Item]) -> list[Item]:
        """The items that are not approved."""
        return [] if self.everything else [item for item in wanted if item.key not in self.approved]

    def approving(self, items: Iterable[Item]) -> Trust:
        """A copy that also approves these items."""
        return msgspec.structs.replace(self, approved=self.approved | {item.key for item in items})

    def recalling(self, wanted: Iterable[Item]) -> Trust:
        """A copy that also approves those of the items that the user approved earlier."""
        unknown = self.missing(wanted)
        return self.approving(store.remembered(unknown)) if unknown else self

    def require(self, wanted: Iterable[Item]) -> None:
        """Raises a TrustError that lists what is not approved and how to approve it."""
        missing = self.missing(wanted)
        if missing:
            raise TrustError(describe.refusal(missing))


def required(trust: Trust, wanted: list[Item]) -> Trust:
    """A trust that covers all of `wanted`, from earlier approvals; otherwise a TrustError."""
    trust = trust.recalling(wanted)
    trust.require(wanted)
    return trust


def from_environment(environ: Mapping[str, str], *, flag: bool = False) -> Trust:
    """The trust at the start, from `--trust` and RALPH_TRUST."""
    return Trust(everything=flag or environ.get(VARIABLE, "").strip().lower() in ("1", "true", "yes", "on"))
