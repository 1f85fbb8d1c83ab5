"""Bounded memory of calls and messages by id. An agent may run for days, so only the most recent ones are kept."""

from __future__ import annotations

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")
#: Far more than any line refers back to. When there are more, the older half is forgotten.
KEPT = 4096


class Recent(dict[K, V], Generic[K, V]):
    """A dict that forgets the oldest entries. Add entries with `[…] = …` and `setdefault` only."""

    __slots__ = ("_forgotten",)

    def __init__(self) -> None:
        super().__init__()
        self._forgotten = 0

    @property
    def added(self) -> int:
        """How many entries were ever added, including the forgotten ones. It is wrong if entries were removed."""
        return self._forgotten + len(self)

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        if len(self) > KEPT:
            for old in self._oldest_first()[: len(self) - KEPT // 2]:
                del self[old]
                self._forgotten += 1

    def _oldest_first(self) -> list[K]:
        return list(self)

    def setdefault(self, key: K, default: V) -> V:
        if key not in self:
            self[key] = default
        return self[key]


class RecentKeys(Recent[K, None]):
    """The same as a set."""

    __slots__ = ()

    def add(self, key: K) -> None:
        self[key] = None

    def discard(self, key: K) -> None:
        self.pop(key, None)


class RecentCalls(Recent[str, str | None]):
    """Tool calls by id: the tool's name while a call is open, None once it has ended.

    Calls that ended are forgotten before open ones. `calls[call] = None` ends a call.
    """

    __slots__ = ()

    def begin(self, call: str, name: str) -> None:
        self[call] = name

    def oldest(self) -> str | None:
        """Return the oldest open call."""
        return next((call for call, name in self.items() if name is not None), None)

    def _oldest_first(self) -> list[str]:
        return sorted(self, key=lambda call: self[call] is not None)
