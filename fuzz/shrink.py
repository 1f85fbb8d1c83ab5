"""Makes a crash smaller: removes pieces of the input for a few seconds, as long as it fails in the same way."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def shrink(check: Callable[[bytes], None], data: bytes, seconds: float = 5.0) -> bytes:
    end = time.monotonic() + seconds
    kind = how_it_fails(check, data)
    if kind is None:
        return data
    size = max(1, len(data) // 2)
    while size:
        at = 0
        while at < len(data) and time.monotonic() < end:
            shorter = data[:at] + data[at + size :]
            if how_it_fails(check, shorter) == kind:
                data = shorter
            else:
                at += size
        size //= 2
    return data


def how_it_fails(check: Callable[[bytes], None], data: bytes) -> str | None:
    """The type of the exception and the start of its message; None if it does not fail."""
    try:
        check(data)
    except Exception as error:  # noqa: BLE001 - any exception is compared
        return f"{type(error).__name__}: {str(error).partition(':')[0][:40]}"
    return None
