"""What all targets share: reporting a violation, and random choices that depend only on the input."""

from __future__ import annotations

import random
import zlib


class ViolationError(AssertionError):
    """A property does not hold. The message says which one, and for what."""


def require(holds: bool, what: str, *about: object) -> None:
    if not holds:
        shown = ", ".join(repr(value)[:600] for value in about)
        raise ViolationError(f"{what}: {shown}" if about else what)


def choices(data: bytes) -> random.Random:
    """Random choices that are the same for the same input, so that every finding can be reproduced."""
    return random.Random(zlib.crc32(data))


def cut(data: bytes, rng: random.Random) -> list[bytes]:
    """Splits data into chunks as a pipe might: byte by byte, or at a few random places."""
    if len(data) < 64 and rng.random() < 0.3:
        return [data[i : i + 1] for i in range(len(data))]
    ends = sorted(rng.randrange(len(data) + 1) for _ in range(rng.randrange(1, 8)))
    return [data[a:b] for a, b in zip([0, *ends], [*ends, len(data)], strict=True)]
