"""Numbers in text, which may have any number of digits."""

from __future__ import annotations

#: Larger than any real count or time, but small enough to calculate with.
LARGEST = 10**15


def whole(digits: str) -> int:
    return int(digits) if len(digits) <= 15 else LARGEST


def amount(digits: str) -> float:
    return min(float(digits), float(LARGEST))
