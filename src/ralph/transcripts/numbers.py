"""Numbers in text, of which nobody says how long they are."""

from __future__ import annotations

#: Larger than any count or time that is meant, and small enough to reckon with.
LARGEST = 10**15


def whole(digits: str) -> int:
    return int(digits) if len(digits) <= 15 else LARGEST


def amount(digits: str) -> float:
    return min(float(digits), float(LARGEST))
