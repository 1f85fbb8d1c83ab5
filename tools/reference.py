"""Generate docs/reference/commands.md, configuration.md and the table of rooms: reference.py [--check]

With --check, write nothing and exit with 1 if a page is out of date.
"""

import os
import sys
from pathlib import Path

os.environ["COLUMNS"] = "80"

import click

from ralph.cli.group import ralph
from ralph.config.durations import format_duration
from ralph.config.guards import GUARDS, PROTECTED, Guard
from ralph.config.settings import FIELDS, OPTIONS, default, is_duration

sys.path.insert(0, str(Path(__file__).parent))
from rooms import ROOMS

DOCS = Path(__file__).parent.parent / "docs"


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
        "variable, the nearest `ralph.yml` (in the working directory or above it, up to the top of the repository, or",
        "the one you name with `-c FILE`), and your own `~/.config/ralph/ralph.yml`. Some of them guard you: there,",
        "the [stricter value](#guards) counts. `ralph config` shows the effective settings and where each value comes",
        "from. `ralph config --schema` prints a JSON schema for your editor.",
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
    return "\n".join([*parts, *_guards()]) + "\n"


_STRICTER = {
    Guard.YES: "yes, if either is yes",
    Guard.NO: "no, if either is no",
    Guard.LOWEST: "the lower limit",
    Guard.HIGHEST: "the higher number",
    Guard.ALL: "the entries of both",
    Guard.PATHS: "files that both allow",
    Guard.SANDBOX: "the stricter sandbox",
    Guard.TOOLS: "tools that both allow; if there is none, yours",
    Guard.ADAPTERS: "for each agent, disabled if either is, and the lower timeout",
    Guard.USERS: "yours",
}


def _guards() -> list[str]:
    rows = []
    for guard, text in _STRICTER.items():
        names = ", ".join(f"`{option.name}`" for option in OPTIONS if GUARDS.get(option.name) is guard)
        rows.append(f"| {names} | {text} |")
    return [
        "",
        "## Guards",
        "",
        "A project may tighten these settings, but not loosen them. If a project's file and your own file set one of",
        "them, this counts:",
        "",
        "| Settings | What counts |",
        "|---|---|",
        *rows,
        "",
        f"A project cannot change the defaults of {', '.join(f'`{name}`' for name in sorted(PROTECTED))}, and it can",
        "replace a default limit by another one, but not remove it. To let a project loosen a guard, approve its value",
        "with `ralph trust` (see [Trust](../explanation/trust.md)). What you set on the command line or in the",
        "environment always counts.",
        "",
        "An unknown key is a warning, but an error if it looks like a misspelled guard, such as `max_cots`.",
    ]


def _default(name: str) -> str:
    value = default(name)
    if value in (None, (), {}, ""):
        return ""
    if is_duration(name):
        return format_duration(value) if value else "no limit"
    if FIELDS[name].type is bool:
        return "yes" if value else "no"
    return f"`{value}`"


def architecture(page: str) -> str:
    """The page with a fresh table of rooms: which there are, and what each really imports."""
    import grimp

    graph = grimp.build_graph("ralph", cache_dir=None)
    used: dict[str, set[str]] = {room: set() for room in ROOMS}
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            here, there = (f"{name}.".split(".")[1] for name in (module, imported))
            if here in ROOMS and there in ROOMS and here != there:
                used[here].add(there)
    rows = ["| Room | Subject | Imports |", "|---|---|---|"]
    for room, subject in ROOMS.items():
        names = ", ".join(f"`{name}`" for name in ROOMS if name in used[room])
        rows.append(f"| `{room}` | {subject} | {names or '–'} |")
    before, _, rest = page.partition("<!-- rooms -->")
    _, _, after = rest.partition("<!-- end of rooms -->")
    return f"{before}<!-- rooms -->\n{chr(10).join(rows)}\n<!-- end of rooms -->{after}"


def main() -> int:
    explained = DOCS / "explanation" / "architecture.md"
    pages = {
        DOCS / "reference" / "commands.md": commands(),
        DOCS / "reference" / "configuration.md": configuration(),
        explained: architecture(explained.read_text()),
    }
    stale = []
    for path, text in pages.items():
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(path.name)
    if stale:
        print(f"out of date: {', '.join(stale)}; run `make docs`")
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
