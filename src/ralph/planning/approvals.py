"""Finds what a run would execute or follow because the repository says so, which needs the user's approval.

What users type, set in the environment or keep in their own files needs no approval.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from ralph.agents import registry
from ralph.config import yamlfile
from ralph.dialects.detect import Dialect, Found, find, follows_plan, user_file
from ralph.dialects.modules import module
from ralph.errors import UsageError
from ralph.journal.layout import StatePaths
from ralph.launching.prompt import path_of
from ralph.system.digest import digest
from ralph.system.files import leads_out, repository
from ralph.system.folders import user_config_dir
from ralph.trust.items import Item, of_command, of_files, of_journal, of_others_files, of_path, of_setting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ralph.config.layers import Resolved

_LINE = re.compile(r"(.+):\d+$", re.DOTALL)  # a folder's name may contain a newline
_TYPED = re.compile(r"-.*|[A-Z][A-Z0-9_]*")


def items_to_approve(resolved: Resolved, workdir: Path) -> list[Item]:
    """Everything that needs approval before a run with these settings."""
    found = [*_project_agents(resolved, workdir), *_paths(resolved, workdir), *_prices(resolved)]
    if not all(origin == "default" or _TYPED.fullmatch(origin) for origin in resolved.origins.values()):
        found += _agent(resolved, workdir)
        checks = resolved.projects_part.get("verify", resolved.settings.verify)
        for command in checks if _from_repository(resolved, "verify") else ():
            found += _command(resolved, workdir, ("verify",), command)
    return list({item.key: item for item in found}.values())


def looser_settings(resolved: Resolved) -> list[Item]:
    """The project's settings that are looser than the user's own. They are not used unless the user approves them."""
    return [of_setting(each.name, each.text, each.base, each.origin) for each in resolved.loosened]


def of_config(workdir: Path, found: Found | None = None) -> list[Item]:
    """The configuration files that belong to another user: those of a convention, or a ralph.yml. None is read."""
    own = yamlfile.find_upward(workdir) if found is None else found.path
    paths = [own] if own is not None else []
    if found is not None and found.dialect is Dialect.DRIVER:
        paths += [workdir / ".ralphrc", workdir / ".ralph" / ".ralphrc"]
    return of_others_files(paths, workdir, repository(workdir))


def of_dialect(found: Found, workdir: Path, environ: dict[str, str]) -> list[Item]:
    """The executable files of another convention's agent."""
    return of_files(module(found.dialect).executables(found, workdir, environ), workdir)


# -- the agent


def _agent(resolved: Resolved, workdir: Path) -> list[Item]:
    settings = resolved.settings
    if settings.agent_script is not None:
        return _script(resolved, workdir, settings.agent_script)
    if settings.driver is not None:
        return _driver(resolved, workdir, settings.driver)
    if settings.claude_command is not None:
        text = f"{settings.claude_command} {settings.claude_args}".strip()
        return _command(resolved, workdir, ("claude_command", "claude_args"), text)
    if settings.agent_cmd is not None:
        return _command(resolved, workdir, ("agent_cmd",), settings.agent_cmd)
    if settings.agent == "custom" and settings.command:
        flag = [settings.prompt_flag] if settings.prompt_flag else []
        text = " ".join([settings.command, *map(shlex.quote, [*settings.args, *flag])])
        return _command(resolved, workdir, ("command", "args", "prompt_flag"), text)
    if settings.agent != "auto" and settings.command:
        # It replaces a known program, and ralph asks that for its version before the start.
        return _command(resolved, workdir, ("command",), settings.command, at_start=True)
    return []


def _script(resolved: Resolved, workdir: Path, value: str) -> list[Item]:
    """The script, its configuration and the scripts next to it."""
    if _is_users(resolved, "agent_script"):
        return []
    found = [
        item
        for each in find(workdir)
        if each.dialect is Dialect.SCRIPT
        for item in of_dialect(each, workdir, resolved.environ)
    ]
    base = resolved.bases.get("agent_script", workdir)
    names = (value, f"agents/{value}.sh", f".ralph/agents/{value}.sh")
    scripts = [path for name in names for place in (base, workdir) if (path := place / name).is_file()]
    # The script is loaded together with the configuration next to it.
    folders = [path.parent.parent if path.parent.name == "agents" else path.parent for path in scripts]
    paths = [*(folder / "config" for folder in folders if (folder / "config").is_file()), *scripts]
    return [*found, *of_files([Path(os.path.normpath(path)) for path in paths], workdir)]


def _driver(resolved: Resolved, workdir: Path, value: str) -> list[Item]:
    """The driver and the files next to it, and a `.ralphrc` that does more than set limits."""
    from ralph.dialects.driver.config import read
    from ralph.dialects.driver.locate import all_drivers

    shown, file = read(workdir, {})
    command = file.values.get("CLAUDE_CODE_CMD")
    # A .ralphrc can name Claude's program, and export variables that change what programs do.
    has_code = any(a.exported for a in file.values.values()) or (
        command is not None and command.value not in ("", "claude")
    )
    found = of_files([workdir / shown] if has_code else [], workdir)
    if _is_users(resolved, "driver"):
        return found
    drivers = all_drivers(workdir)
    return [*found, *of_files(drivers if any(path.stem == value for path in drivers) else [], workdir)]


def _project_agents(resolved: Resolved, workdir: Path) -> list[Item]:
    """The specs in the repository of the agents that may run."""
    found = []
    for name in dict.fromkeys((resolved.settings.agent, *resolved.settings.agents)):
        path = registry.project_file(name, workdir)
        found += [] if path is None else of_files([path], workdir, f"agent '{name}'")
    return found


# -- commands


def _command(
    resolved: Resolved, workdir: Path, names: tuple[str, ...], text: str, *, at_start: bool = False
) -> list[Item]:
    """The command in these settings, and the files in the repository that it names or runs."""
    name = next((name for name in names if _from_repository(resolved, name)), None)
    if name is None:
        return []
    from ralph.trust.commands import TooMuchError, files_of  # late: most repositories bring no command

    root = resolved.bases.get(name, workdir)
    origin = resolved.origins[name]
    source = next((file for file in resolved.files if file.parent == root), None)
    found = [Item(names[0], text, digest(text.encode("utf-8", "replace")), root, origin, source, at_start)]
    try:
        paths = files_of(text, (root, workdir), repository(workdir))
    except TooMuchError as error:
        raise UsageError(f"{origin}: this {names[0]} cannot be checked: {error}. Put it in a script") from None
    return found + of_command(names[0], paths, root, origin, at_start=at_start)


def _prices(resolved: Resolved) -> list[Item]:
    """The repository's prices, if the user set a budget: with a price of 0, it would never be reached."""
    settings = resolved.settings
    if not settings.prices or not settings.max_cost or not _is_users(resolved, "max_cost"):
        return []
    if not _from_repository(resolved, "prices"):
        return []
    base = resolved.bases["prices"]
    return of_files([base / Path(settings.prices).expanduser()], base, resolved.origins["prices"], at_start=False)


# -- paths that lead out of the repository


def _paths(resolved: Resolved, workdir: Path) -> list[Item]:
    """Paths outside the repository that a file or a link in it leads to, for reading or writing."""
    state = StatePaths(workdir)
    found = of_journal(workdir, (state.root, state.runs), repository(workdir))
    for name, path in _named_paths(resolved, workdir):
        if _is_users(resolved, name):
            continue
        base = resolved.bases.get(name, workdir)
        roots = (repository(base),) if name == "cwd" else (repository(workdir), repository(base))
        origin = "" if resolved.origins[name] == "default" else resolved.origins[name]
        found += of_others_files([path], workdir, repository(workdir), origin)
        target = leads_out(path, *roots)
        if target is not None:
            found.append(of_path(name, path, target, base if name == "cwd" else workdir, resolved.origins[name]))
    return found


def _named_paths(resolved: Resolved, workdir: Path) -> Iterator[tuple[str, Path]]:
    """The settings that are paths, each with its path."""
    settings = resolved.settings
    yield from _prompt_paths(resolved, workdir)
    if settings.fix_plan:
        yield "fix_plan", workdir / Path(settings.fix_plan)
    if settings.prices:
        yield "prices", resolved.bases.get("prices", Path()) / Path(settings.prices).expanduser()
    if settings.cwd and "cwd" in resolved.bases:
        yield "cwd", resolved.bases["cwd"] / Path(settings.cwd).expanduser()


def _prompt_paths(resolved: Resolved, workdir: Path) -> Iterator[tuple[str, Path]]:
    if follows_plan(resolved):
        from ralph.dialects.provider import planfile

        try:
            yield "plan", planfile.locate(resolved, workdir)
        except UsageError:
            pass  # there is no plan; that is reported where one is needed
        yield "claude_prompt", workdir / planfile.TEMPLATE
    elif resolved.settings.prompt is None:
        yield "prompt_file", path_of(resolved, workdir)


# -- who set a value


def _from_repository(resolved: Resolved, name: str) -> bool:
    if not any(_LINE.fullmatch(part) for part in resolved.origins[name].split(", ")):
        return False
    return not _in_users_file(resolved, name)


def _is_users(resolved: Resolved, name: str) -> bool:
    """Whether the user set it: on the command line, in the environment or in a file of their own."""
    return _TYPED.fullmatch(resolved.origins[name]) is not None or _in_users_file(resolved, name)


def _in_users_file(resolved: Resolved, name: str) -> bool:
    if resolved.bases.get(name) == user_config_dir(resolved.environ):
        return True
    ralphex = user_file(resolved.environ)
    return all(
        (match := _LINE.fullmatch(part)) is not None and Path(match.group(1)) == ralphex
        for part in resolved.origins[name].split(", ")
    )
