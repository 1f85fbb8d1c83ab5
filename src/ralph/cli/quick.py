"""A second reader of the command line of `ralph run`, for a fast start: importing click takes a third of it.

It accepts exactly these forms:

- `--flag VALUE`, `--flag=VALUE` and `-f VALUE`, where VALUE does not begin with `-` unless it follows `=`
- `--switch` and `--no-switch`
- at most one argument that is not a flag: MAX_ITERATIONS

Everything else (`--resume`, `--help`, `-fVALUE`, `--`, abbreviations, mistakes) is left to click, which knows every
form and reports what is wrong. A test compares the two readers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ralph.config.settings import FIELDS, OPTIONS, is_list, is_yes_or_no

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What is no setting and belongs to this run alone.
_CONFIG, _DRY_RUN, _TRUST = "config_file", "dry_run", "trust"


class RunArguments(msgspec.Struct, frozen=True):
    """The command line of `ralph run`. `flags` has the settings, in the order in which click returns them."""

    flags: dict[str, Any] = {}
    config_file: str | None = None
    dry_run: bool = False
    trust: bool = False


class _LeftToClickError(Exception):
    """The command line has a form that this reader does not accept."""


def read(arguments: list[str]) -> RunArguments | None:
    """The command line, or None if click must read it."""
    values: dict[str, Any] = {}
    try:
        for name, value in _pairs(arguments):
            values[name] = (*values.get(name, ()), value) if name in FIELDS and is_list(name) else value
    except _LeftToClickError:
        return None
    if "max_iterations" in values:  # an argument: click puts it last
        values["max_iterations"] = values.pop("max_iterations")
    own = {name: values.pop(name) for name in (_CONFIG, _DRY_RUN, _TRUST) if name in values}
    return RunArguments(values, **own)


def _pairs(arguments: list[str]) -> Iterator[tuple[str, Any]]:
    """Names with their values, in the order of the command line."""
    switches, with_value = _table()
    iterations = 0
    rest = iter(arguments)
    for argument in rest:
        flag, equals, value = argument.partition("=") if argument.startswith("--") else (argument, "", "")
        if flag in with_value:
            yield with_value[flag], value if equals else _next_value(rest)
        elif flag in switches and not equals:
            yield switches[flag]
        elif argument.startswith("-") or iterations:
            raise _LeftToClickError
        else:
            iterations += 1
            yield "max_iterations", argument


def _next_value(rest: Iterator[str]) -> str:
    value = next(rest, "-")
    if value.startswith("-"):  # missing, or it looks like a flag
        raise _LeftToClickError
    return value


def _table() -> tuple[dict[str, tuple[str, bool]], dict[str, str]]:
    """The setting and the value that each switch stands for, and the setting of each flag that takes a value."""
    switches = {"--dry-run": (_DRY_RUN, True), "--trust": (_TRUST, True)}
    with_value = {"-c": _CONFIG, "--config": _CONFIG}
    for option in OPTIONS:
        if FIELDS[option.name].type is bool and not is_yes_or_no(option.name):
            for flag in option.flags:
                switches[flag] = (option.name, True)
                if flag == option.flags[-1]:
                    switches[f"--no-{flag.removeprefix('--')}"] = (option.name, False)
        else:
            for flag in option.flags:
                with_value[flag] = option.name
    return switches, with_value
