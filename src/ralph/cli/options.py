"""Click options out of the table of settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from ralph.config.settings import FIELDS, OPTIONS, is_list

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")


def setting_options(function: F) -> F:
    """Every setting that has a flag, in the order of the table. Values are checked by the configuration."""
    for option in reversed(OPTIONS):
        if not option.flags:
            continue
        if FIELDS[option.name].type is bool:
            function = click.option(*option.flags, option.name, is_flag=True, default=None, help=option.help)(function)
        else:
            function = click.option(
                *option.flags,
                option.name,
                metavar=option.metavar,
                multiple=is_list(option.name),
                default=None,
                help=option.help,
            )(function)
    return function


def given(values: dict[str, Any]) -> dict[str, Any]:
    """What was really on the command line."""
    return {name: value for name, value in values.items() if value is not None and value != ()}
