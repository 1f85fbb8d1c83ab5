"""Click options made from the table of settings, and their help in groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from ralph.config.settings import BY_NAME, FIELDS, OPTIONS, is_list, is_yes_or_no
from ralph.errors import closest, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")

_GROUPS = ("Agent", "Prompt", "Completion", "Limits", "Secrets", "Screen")
_OTHERS = "Other options"
_HELP_WIDTH = 80


class GroupedCommand(click.Command):
    """Shows its options grouped as in the table of settings, and all others at the end."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.width = min(formatter.width, _HELP_WIDTH)
        rows: dict[str, list[tuple[str, str]]] = {group: [] for group in (*_GROUPS, _OTHERS)}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                option = BY_NAME.get(parameter.name or "")
                flags, text = record
                row = (flags.partition(" / ")[0], text)  # the --no- forms are explained once, below
                rows[option.group if option and option.group in rows else _OTHERS].append(row)
        for group, records in rows.items():
            if records:
                with formatter.section(group):
                    formatter.write_dl(records, col_max=26)
        formatter.write_paragraph()
        formatter.write_text(
            "Switches that ralph.yml can turn on have a --no- form that turns them off, such as --no-pty."
        )


#: What people type for `ralph run`, because other tools call it so.
_ELSEWHERE: dict[str, tuple[str, ...]] = {
    "--agent": ("--tool", "--backend", "--provider", "--engine", "--executor", "--cli"),
    "--cwd": ("--root", "--dir", "--directory", "--workdir", "--working-dir", "--path", "--project", "-C"),
    "--max-cost": ("--budget", "--cost", "--max-budget", "--max-budget-usd", "--max-cost-usd"),
    "--max-runtime": ("--max-time", "--max-duration", "--duration"),
    "--max-calls-per-hour": ("--calls",),
    "--verify": ("--test", "--check", "--gate"),
    "--ui json": ("--json", "--output-format"),
    "--ui quiet": ("--quiet", "-q", "--silent"),
    "-P": ("--file", "-f"),
}
_COUNTS = frozenset(
    {"--max-iterations", "--max-iteration", "--iterations", "--max-iters", "--iters", "--loops", "--max-loops", "-n"}
)


def suggestion(flag: str, command: click.Command) -> str:
    """What to use instead of an option that the command does not have, as the end of a sentence. It may be empty."""
    if command.name == "run":
        if flag in _COUNTS:
            return "; the number of iterations is an argument: ralph run 10"
        for ours, theirs in _ELSEWHERE.items():
            if flag in theirs:
                return f"; use {ours}"
    flags = [name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)]
    return did_you_mean(closest(flag, [name for name in flags if name.startswith("--")], cutoff=0.75))


def setting_options(function: F) -> F:
    """Adds an option for every setting that has a flag, in the order of the table. `config` checks the values."""
    for option in reversed(OPTIONS):
        if not option.flags:
            continue
        if FIELDS[option.name].type is bool and not is_yes_or_no(option.name):
            # A flag can switch off what a file switches on.
            flags = (*option.flags[:-1], f"{option.flags[-1]}/--no-{option.flags[-1].removeprefix('--')}")
            function = click.option(*flags, option.name, default=None, help=option.help)(function)
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
    """Only the options that were on the command line."""
    return {name: value for name, value in values.items() if value is not None and value != ()}
