"""A fault: its name, what must come of it, and how it is made to happen. Each is one function with `@fault`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from faults.place import Place

Made: TypeAlias = Callable[[Place], None]


class Fault(msgspec.Struct, frozen=True):
    name: str
    #: exactly what `Place.seen` must say in the end
    expected: str
    make: Made
    #: after so many seconds it is a hang
    bound: float = 60.0
    #: the expectation in the short form, where sizes differ; None: the same
    short_expected: str | None = None
    #: whether the short form has it
    short: bool = True
    #: needs to mount file systems of its own
    mounts: bool = False

    def expectation(self, *, short: bool) -> str:
        return self.short_expected if short and self.short_expected is not None else self.expected


class NotPossibleError(Exception):
    """This machine does not let the fault be made."""


_ALL: dict[str, Fault] = {}


def fault(
    name: str,
    expected: str,
    *,
    bound: float = 60.0,
    short: bool = True,
    short_expected: str | None = None,
    mounts: bool = False,
) -> Callable[[Made], Made]:
    """Puts a function into the matrix. It gets a `Place`, makes the fault there and says what it saw."""

    def register(make: Made) -> Made:
        add(Fault(name, expected, make, bound, short_expected, short, mounts))
        return make

    return register


def add(one: Fault) -> None:
    if one.name in _ALL:
        raise ValueError(f"there are two faults '{one.name}'")
    _ALL[one.name] = one


def every() -> dict[str, Fault]:
    """All of them, in the order of the table."""
    from faults import rows

    rows.load()
    return _ALL
