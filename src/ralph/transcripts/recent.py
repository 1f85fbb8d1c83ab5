"""Memory of calls and messages by their id, of the most recent ones only: an agent may run for days."""

from __future__ import annotations

from itertools import islice
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")
#: Far more than any line refers back over; the older half is forgotten when there are more.
KEPT = 4096


class Recent(dict[K, V], Generic[K, V]):
    """A dict that forgets what was added first. Entries are added by `[…] = …` and `setdefault` only."""

    __slots__ = ("added",)

    def __init__(self) -> None:
        super().__init__()
        #: how many there ever were, also those that were forgotten
        self.added = 0

    def __setitem__(self, key: K, value: V) -> None:
        if key not in self:
            self.added += 1
            if len(self) >= KEPT:
                for old in list(islice(self, KEPT // 2)):
                    del self[old]
        super().__setitem__(key, value)

    def setdefault(self, key: K, default: V) -> V:
        if key not in self:
            self[key] = default
        return self[key]


class RecentKeys(Recent[K, None]):
    """The same as a set."""

    __slots__ = ()

    def add(self, key: K) -> None:
        if key not in self:
            self[key] = None

    def discard(self, key: K) -> None:
        self.pop(key, None)
