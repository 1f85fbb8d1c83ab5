"""Versions and version ranges."""

from __future__ import annotations

import re
from enum import StrEnum


def parse_version(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", text)[:4])


def in_range(version: str, expression: str) -> bool:
    """Whether the version is in a range like `>=1.2,<2`. An empty expression contains all versions."""
    return all(_holds(version, part.strip()) for part in expression.split(",") if part.strip())


def _holds(version: str, condition: str) -> bool:
    have, want = _padded(version), _padded(condition)
    match condition.rstrip("0123456789. "):
        case ">=":
            return have >= want
        case ">":
            return have > want
        case "<=":
            return have <= want
        case "<":
            return have < want
        case _:
            return have == want


def _padded(version: str) -> tuple[int, ...]:
    return (*parse_version(version), 0, 0, 0, 0)[:4]


def below(version: str, minimum: str | None) -> bool:
    return minimum is not None and not in_range(version, f">={minimum}")


class VersionStatus(StrEnum):
    """How a version compares to the tested ones."""

    TESTED = "tested"
    OLDER = "older"
    NEWER = "newer"
    BETWEEN = "between"
    TOO_OLD = "too_old"
    UNKNOWN = "unknown"


def version_status(version: str | None, tested: tuple[str, ...], minimum: str | None = None) -> VersionStatus:
    """Compare major.minor only: a patch release is not expected to change flags."""
    if version is None or not parse_version(version):
        return VersionStatus.UNKNOWN
    if below(version, minimum):
        return VersionStatus.TOO_OLD
    have, known = _padded(version)[:2], [_padded(one)[:2] for one in tested]
    if not known:
        return VersionStatus.UNKNOWN
    if have in known:
        return VersionStatus.TESTED
    if have < min(known):
        return VersionStatus.OLDER
    return VersionStatus.NEWER if have > max(known) else VersionStatus.BETWEEN
