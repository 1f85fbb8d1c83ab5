"""Converts a value as the user wrote it to the type of its setting, or explains what is wrong with it."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any

import msgspec

from ralph.config.durations import parse_duration
from ralph.config.settings import FIELDS, Option, is_duration, is_list, is_yes_or_no
from ralph.errors import nearest

#: Each of them is tried on all output.
_MAX_PATTERNS = 100
_YES = frozenset({"1", "true", "yes", "on"})
_NO = frozenset({"0", "false", "no", "off"})


def convert(name: str, value: Any, *, strict: bool) -> Any:
    """The value in the setting's type. A ValueError says what was expected.

    `strict` is for files, where numbers are not strings. Flags and variables are always strings.
    """
    if is_duration(name):
        return parse_duration(value)
    kind = FIELDS[name].type
    if kind is bool and isinstance(value, str) and (not strict or is_yes_or_no(name)):
        value = _truth(value)
    if is_list(name) and isinstance(value, str):
        value = [value]  # a single value stands for a list of one
    try:
        result = msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError:
        raise ValueError(f"expected {expected(name, value)}") from None
    if isinstance(result, float) and not math.isfinite(result):
        raise ValueError(f"expected {expected(name, value)}")
    if name == "mask_patterns":
        _check_patterns(result)
    return result


def _check_patterns(patterns: tuple[str, ...]) -> None:
    """Checks them as text and as bytes, because raw files are bytes."""
    from ralph.system.patterns import PatternError, groups  # late: few projects have patterns

    if len(patterns) > _MAX_PATTERNS:
        raise ValueError(f"expected at most {_MAX_PATTERNS} regular expressions")
    for pattern in patterns:
        try:
            groups(pattern)
            groups(pattern.encode("utf-8", "surrogateescape"))
        except PatternError as error:
            raise ValueError(f"expected regular expressions ('{pattern[:200]}': {error})") from None


def expected(name: str, value: Any = None) -> str:
    """What a setting accepts, in words."""
    kind = FIELDS[name].type
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        choices = [member.value for member in kind]
        return f"one of {', '.join(choices)}" + (nearest(value, choices) if isinstance(value, str) else "")
    if kind is bool:
        return "yes or no" if is_yes_or_no(name) else "true or false"
    if is_list(name):
        return "a list of strings"
    base = getattr(kind, "__origin__", kind)
    if base in (int, float):
        least = next((m.ge for m in getattr(kind, "__metadata__", ()) if m.ge is not None), None)
        number = "a whole number" if base is int else "a number"
        return number if least is None else f"{number} of {least:g} or more"
    if isinstance(value, int | float):
        return "a string (put it in quotes)"
    return "a string"


_COMMA_LISTS = frozenset(
    {
        "allowed_paths", "agent_priority", "agents", "allowed_tools", "env_deny", "mask_env",
        "claude_error_patterns", "claude_limit_patterns", "claude_retry_patterns",
    }
)  # fmt: skip


def split(option: Option, value: Any) -> Any:
    """Splits a list that is written as text: some settings are separated by commas. Empty items are dropped."""
    if not is_list(option.name):
        return value
    items = [value] if isinstance(value, str) else list(value)
    if option.name in _COMMA_LISTS:
        # Claude Code also accepts blanks between tools, and no tool has one in its name.
        separators = ", \t\n\r" if option.name == "allowed_tools" else ","
        items = [part.strip() for item in items for part in split_list(item, separators)]
    return [item for item in items if item.strip()]


def split_list(text: str, separators: str = ",") -> list[str]:
    """Splits at each separator that is not in parentheses, unlike the comma in `Bash(git log, git diff)`."""
    parts: list[str] = []
    end, following = len(text), ""
    for at in range(len(text) - 1, -1, -1):
        if text[at] in "()":
            following = text[at]
        elif text[at] in separators and following != ")":
            parts.append(text[at + 1 : end])
            end = at
    return [text[:end], *reversed(parts)]


def short(value: Any) -> str:
    """A value for a message: masked, and shortened if it is long."""
    from ralph.masking.masker import for_environment  # late: needed only when something is wrong

    text = for_environment().text(repr(value))
    return text if len(text) <= 60 else text[:57] + "..."


def _truth(text: str) -> Any:
    word = text.strip().lower()
    return True if word in _YES else False if word in _NO else text
