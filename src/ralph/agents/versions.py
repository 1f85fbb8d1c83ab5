"""Versions and ranges of them."""

from __future__ import annotations

import re


def parse_version(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", text)[:4])


def in_range(version: str, expression: str) -> bool:
    """`>=1.2,<2`: all parts must hold; an empty expression always does."""
    return all(_holds(version, part.strip()) for part in expression.split(",") if part.strip())


def _holds(version: str, part: str) -> bool:
    operator = re.match(r"[<>=]+", part)
    have, want = parse_version(version), parse_version(part)
    width = max(len(have), len(want))
    left = have + (0,) * (width - len(have))
    right = want + (0,) * (width - len(want))
    match operator.group() if operator else "==":
        case ">=":
            return left >= right
        case ">":
            return left > right
        case "<=":
            return left <= right
        case "<":
            return left < right
        case _:
            return left == right
