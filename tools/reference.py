"""Generate docs/reference/commands.md and configuration.md from the program: reference.py [--check]

With --check, write nothing and exit with 1 if a page is out of date.
"""

import os
import sys
from pathlib import Path

os.environ["COLUMNS"] = "80"

import click

from ralph.cli.group import ralph
from ralph.config.durations import format_duration
from ralph.config.settings import FIELDS, OPTIONS, default, is_duration

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"


def commands() -> str:
    parts = ["# Commands", "", "Generated from `--help` by `make docs`.", ""]
    context = click.Context(ralph, info_name="ralph", terminal_width=80, **ralph.context_settings)
    parts += ["```text", ralph.get_help(context), "```", ""]
    for name in ralph.list_commands(context):
        command = ralph.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context, terminal_width=80, **command.context_settings)
        parts += [f"## ralph {name}", "", "```text", command.get_help(inner), "```", ""]
    return "\n".join(parts)


def configuration() -> str:
    parts = [
        "# Configuration",
        "",
        "Generated from the table of settings by `make docs`.",
        "",
        "A setting can come from several places. From strongest to weakest, these are: a flag, an environment",
        "variable, the nearest `ralph.yml` (in the working directory or above it, or the one you name with `-c FILE`),",
        "and your own `~/.config/ralph/ralph.yml`. `ralph config` shows the effective settings and where each value",
        "comes from. `ralph config --schema` prints a JSON schema for your editor.",
        "",
        "If a file uses several keys for one setting, the first key in the table wins. Durations are in seconds, or",
        "written as `90s`, `15m` or `1h30m`. 0 disables a limit.",
        "",
        "| Keys in ralph.yml | Flag | Variable | Default | Description |",
        "|---|---|---|---|---|",
    ]
    for option in OPTIONS:
        keys = ", ".join(f"`{k}`" for k in option.all_keys)
        flags = ", ".join(f"`{f}`" for f in option.flags) or (
            "`MAX_ITERATIONS`" if option.name == "max_iterations" else ""
        )
        variables = "" if option.name == "adapters" else ", ".join(f"`{v}`" for v in option.all_env)
        text = option.help.partition(" [default")[0].rstrip(".").replace("|", "\\|")
        parts.append(f"| {keys} | {flags} | {variables} | {_default(option.name)} | {text} |")
    return "\n".join(parts) + "\n"


def _default(name: str) -> str:
    value = default(name)
    if value in (None, (), {}, ""):
        return ""
    if is_duration(name):
        return format_duration(value) if value else "no limit"
    if FIELDS[name].type is bool:
        return "yes" if value else "no"
    return f"`{value}`"


def main() -> int:
    stale = []
    for name, text in (("commands.md", commands()), ("configuration.md", configuration())):
        path = REFERENCE / name
        if "--check" in sys.argv:
            if not path.exists() or path.read_text() != text:
                stale.append(name)
        else:
            path.write_text(text)
    if stale:
        print(f"out of date: {', '.join(stale)}; run `make docs`")
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
