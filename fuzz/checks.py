"""What every target shares: how it says that something does not hold, and choices that depend on the input alone."""

from __future__ import annotations

import random
import zlib


class ViolationError(AssertionError):
    """A property that does not hold; the message says which, and for what."""


def require(holds: bool, what: str, *about: object) -> None:
    if not holds:
        shown = ", ".join(repr(value)[:600] for value in about)
        raise ViolationError(f"{what}: {shown}" if about else what)


def choices(data: bytes) -> random.Random:
    """The same for the same input, so that whatever is found can be found again."""
    return random.Random(zlib.crc32(data))


def cut(data: bytes, rng: random.Random) -> list[bytes]:
    """In chunks, as a pipe might hand them over: byte by byte, or at any few places."""
    if len(data) < 64 and rng.random() < 0.3:
        return [data[i : i + 1] for i in range(len(data))]
    ends = sorted(rng.randrange(len(data) + 1) for _ in range(rng.randrange(1, 8)))
    return [data[a:b] for a, b in zip([0, *ends], [*ends, len(data)], strict=True)]
