"""Regular expressions from files: matched in linear time, so that none of them can hang ralph (with RE2)."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, AnyStr

if TYPE_CHECKING:
    from collections.abc import Iterator


class PatternError(ValueError):
    """It is no regular expression, or one that cannot be matched in linear time."""


def spans(source: AnyStr, data: AnyStr) -> Iterator[tuple[int, int]]:
    """Where the pattern matches. It must be a valid one."""
    compiled = _compiled(source)
    if isinstance(data, str):
        # RE2 reads UTF-8, which has no lone surrogates. A replacement is as long, so the positions stay right.
        for found in compiled.finditer(data.encode("utf-8", "replace").decode("utf-8")):
            yield found.span()
        return
    for found in compiled.finditer(data):
        yield found.span()


def first_group(source: str, text: str) -> str | None:
    """What the pattern's first group matches, or None."""
    found = _compiled(source).search(text.encode("utf-8", "replace").decode("utf-8"))
    group: str | None = found.group(1) if found else None
    return group


def groups(source: AnyStr) -> int:
    """How many groups a pattern has. A PatternError says what is wrong with it."""
    count: int = _compiled(source).groups
    return count


@cache
def _compiled(source: Any) -> Any:
    import re2  # late: few projects have such patterns

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(source, options=options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        look = "invalid perl operator" in text or text.startswith("invalid escape sequence: \\")
        hint = "; lookaround, backreferences and \\Z are not supported" if look else ""
        raise PatternError(f"{text}{hint}") from None
