"""Versions and ranges of them."""

from __future__ import annotations

import re
from enum import StrEnum


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


def below(version: str, minimum: str | None) -> bool:
    return minimum is not None and not in_range(version, f">={minimum}")


class VersionStatus(StrEnum):
    """How a version stands to those that were tried."""

    TESTED = "tested"
    OLDER = "older"
    NEWER = "newer"
    BETWEEN = "between"
    TOO_OLD = "too_old"
    UNKNOWN = "unknown"


def version_status(version: str | None, tested: tuple[str, ...], minimum: str | None = None) -> VersionStatus:
    """Tested is the same major.minor as one that was; a patch release is not expected to change flags."""
    if version is None or not parse_version(version):
        return VersionStatus.UNKNOWN
    if below(version, minimum):
        return VersionStatus.TOO_OLD
    have, tried = _line(version), [_line(t) for t in tested]
    if not tried:
        return VersionStatus.UNKNOWN
    if have in tried:
        return VersionStatus.TESTED
    if have < min(tried):
        return VersionStatus.OLDER
    return VersionStatus.NEWER if have > max(tried) else VersionStatus.BETWEEN


def _line(version: str) -> tuple[int, ...]:
    return (*parse_version(version), 0, 0)[:2]
