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


class RecentCalls(dict[str, str | None]):
    """Calls of tools by their id: the name of one that is open, None for one that has ended. Of many, those that ended
    first are forgotten first. Entries are added by `begin` only; `calls[call] = None` ends one."""

    __slots__ = ("_forgotten",)

    def __init__(self) -> None:
        super().__init__()
        self._forgotten = 0

    @property
    def added(self) -> int:
        """How many there ever were."""
        return self._forgotten + len(self)

    def begin(self, call: str, name: str) -> None:
        self[call] = name
        if len(self) > KEPT:
            self._forget()

    def oldest(self) -> str | None:
        """Of those that are open."""
        return next((call for call, name in self.items() if name is not None), None)

    def _forget(self) -> None:
        excess = len(self) - KEPT // 2
        ended = [call for call, name in self.items() if name is None]
        still = islice((call for call, name in self.items() if name is not None), max(0, excess - len(ended)))
        for call in [*ended[:excess], *still]:
            del self[call]
        self._forgotten += excess
