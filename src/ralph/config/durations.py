"""Durations such as `90`, `90s`, `15m` or `1h30m`."""

from __future__ import annotations

import re
from decimal import Decimal

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")


def parse_duration(value: object) -> float:
    """The seconds. A ValueError says what was expected."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("expected seconds or a duration such as 90s, 15m or 1h30m")
    if isinstance(value, int | float):
        seconds = float(value) if abs(value) < 1e15 else float("inf")
    else:
        text = value.strip().lower()
        try:
            seconds = float(text)
        except ValueError:
            if not text or _PART.sub("", text).strip():
                raise ValueError("expected seconds or a duration such as 90s, 15m or 1h30m") from None
            seconds = sum(float(n) * _UNITS[unit] for n, unit in _PART.findall(text))
    if not 0 <= seconds < float("inf"):
        raise ValueError("expected a duration of 0 or more (0: no limit)")
    return seconds + 0.0  # turns -0.0 into 0.0


def write_duration(seconds: float) -> str:
    """As people write it in a file: `15m`, `2h`, `1h30m`, `2.5s`, `0s`."""
    if seconds == 0:
        return "0s"
    if seconds != round(seconds):
        return f"{Decimal(repr(seconds)):f}s"
    whole, text = round(seconds), ""
    for unit, size in (("h", 3600), ("m", 60), ("s", 1)):
        if whole >= size:
            text += f"{whole // size}{unit}"
            whole %= size
    return text


def format_duration(seconds: float) -> str:
    """Short and readable: `0.4 s`, `12 s`, `3 m 04 s`, `2 h 05 m`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} m {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} m"
