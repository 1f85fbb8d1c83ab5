"""Counts in messages."""

from __future__ import annotations

#: Before a number that is a lower bound.
AT_LEAST = "≥ "


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 line`, `2 lines`, `1,234 lines`. `plural` is for nouns that do not take an "s"."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
