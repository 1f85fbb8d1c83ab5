"""A fault: its name, the expected result, and the function that injects it. Each is a function with `@fault`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from faults.place import Place

Made: TypeAlias = Callable[[Place], None]


class Fault(msgspec.Struct, frozen=True):
    name: str
    #: what `Place.seen` must be in the end, exactly
    expected: str
    make: Made
    #: after this many seconds it counts as a hang
    bound: float = 60.0
    #: what the short form expects if that differs
    short_expected: str | None = None
    #: whether the short form includes it
    short: bool = True
    #: whether it mounts file systems
    mounts: bool = False

    def expectation(self, *, short: bool) -> str:
        return self.short_expected if short and self.short_expected is not None else self.expected


class NotPossibleError(Exception):
    """The fault cannot be injected on this machine."""


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
    """Adds a function to the suite. It gets a `Place`, injects the fault there and records what it observes."""

    def register(make: Made) -> Made:
        add(Fault(name, expected, make, bound, short_expected, short, mounts))
        return make

    return register


def add(one: Fault) -> None:
    if one.name in _ALL:
        raise ValueError(f"two faults are called '{one.name}'")
    _ALL[one.name] = one


def every() -> dict[str, Fault]:
    """All faults, in the order of the table."""
    from faults import rows

    rows.load()
    return _ALL
