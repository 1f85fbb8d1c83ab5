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

    __slots__ = ("_forgotten",)

    def __init__(self) -> None:
        super().__init__()
        self._forgotten = 0

    @property
    def added(self) -> int:
        """How many there ever were, if none was taken out: also those that were forgotten."""
        return self._forgotten + len(self)

    def __setitem__(self, key: K, value: V) -> None:
        dict.__setitem__(self, key, value)  # `super()` takes time, and this is done for each call of a tool
        if len(self) > KEPT:
            self._forget()

    def _forget(self) -> None:
        for old in list(islice(self, len(self) - KEPT // 2)):
            del self[old]
            self._forgotten += 1

    def setdefault(self, key: K, default: V) -> V:
        if key not in self:
            self[key] = default
        return self[key]


class RecentKeys(Recent[K, None]):
    """The same as a set."""

    __slots__ = ()

    def add(self, key: K) -> None:
        dict.__setitem__(self, key, None)
        if len(self) > KEPT:
            self._forget()

    def discard(self, key: K) -> None:
        self.pop(key, None)
