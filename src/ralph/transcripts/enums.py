"""Members of an enum as plain attributes of its class."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from enum import Enum

    E = TypeVar("E", bound=type[Enum])


def plain_members(enum: E) -> E:
    """Python 3.11 looks a member up by a descriptor, slower than it builds an event; 3.12 does without by itself."""
    if sys.version_info < (3, 12):
        for name, member in enum.__members__.items():
            type.__setattr__(enum, name, member)
    return enum
