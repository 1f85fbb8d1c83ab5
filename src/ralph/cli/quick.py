"""`ralph run` in its usual forms, read without click: importing that takes a third of a start.

Whatever is not plain is left to click, which knows every form and says what is wrong.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ralph.config.settings import FIELDS, OPTIONS, is_list, is_yes_or_no


class Asked(msgspec.Struct):
    """A command line: the settings on it, in the order in which click gives them, and what is for this run alone."""

    flags: dict[str, Any] = {}
    config_file: str | None = None
    dry_run: bool = False
    trust: bool = False


def read(arguments: list[str]) -> Asked | None:
    """Long flags and short ones with their values apart, `--flag=value`, one number; None for anything else."""
    asked = Asked()
    switches, valued = _table()
    iterations: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        flag, equals, value = argument.partition("=") if argument.startswith("--") else (argument, "", "")
        if not flag.startswith("-"):
            iterations.append(argument)
        elif flag in valued:
            if not equals:
                value = next(rest, "-")
                if value.startswith("-"):  # none, or one that looks like a flag
                    return None
            name = valued[flag]
            if name == "config":
                asked.config_file = value
            else:
                asked.flags[name] = (*asked.flags.get(name, ()), value) if is_list(name) else value
        elif flag in switches and not equals:
            name, on = switches[flag]
            match name:
                case "dry_run":
                    asked.dry_run = on
                case "trust":
                    asked.trust = on
                case _:
                    asked.flags[name] = on
        else:
            return None
    if iterations:
        asked.flags["max_iterations"], *more = iterations
        if more:
            return None
    return asked


def _table() -> tuple[dict[str, tuple[str, bool]], dict[str, str]]:
    """What each switch sets to what, and what each flag with a value sets."""
    switches = {"--dry-run": ("dry_run", True), "--trust": ("trust", True)}
    valued = {"-c": "config", "--config": "config"}
    for option in OPTIONS:
        if FIELDS[option.name].type is bool and not is_yes_or_no(option.name):
            for flag in option.flags:
                switches[flag] = (option.name, True)
                if flag == option.flags[-1]:
                    switches[f"--no-{flag.removeprefix('--')}"] = (option.name, False)
        else:
            for flag in option.flags:
                valued[flag] = option.name
    return switches, valued
