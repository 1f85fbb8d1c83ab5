"""Which code of a repository a run would execute, and whether its user has said that it may.

What was typed, stands in the environment or in the user's own files is the user's word already.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ralph.errors import UsageError
from ralph.system.files import leads_out, read

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ralph.config.layers import Resolved
    from ralph.dialects.found import Found

#: A program may be large; nobody reads it before it is trusted.
_MAX_CODE = 256 << 20
#: `1` is "for this run I trust it"; no file can say that.
VARIABLE = "RALPH_TRUST"

_LINE = re.compile(r"(.+):\d+$", re.DOTALL)  # a folder's name may hold a newline
#: Enough to push the rest of a command out of sight.
_BLANKS = re.compile(r"[^\S\n]{9,}")
_EMPTY_LINES = re.compile(r"\n(?:[^\S\n]*\n){3,}")
_LINE_LENGTH = 1000
_LINES_SHOWN = 100
_SHELLS = r"(ba|da|z|k)?sh|python[\d.]*|node|bun|deno|ruby|perl|php|env"
_TYPED = re.compile(r"-.*|[A-Z][A-Z0-9_]*")


class TrustError(UsageError):
    """Nobody has said that this may be run."""


class Item(msgspec.Struct, frozen=True):
    """One thing that would be run."""

    #: `verify`, `command`, … or the path of a file, seen from `root`
    what: str
    #: the command as text; of a file nothing
    text: str
    digest: str
    #: the directory that it belongs to
    root: Path
    #: where it is said: `ralph.yml:3`
    origin: str = ""
    #: the configuration file that says it
    source: Path | None = None
    #: it would be used before the run begins: started to be asked what it is, or read
    at_start: bool = False
    #: it is no code, but a path that leads out of the repository
    path: bool = False


def permitted() -> bool:
    return os.environ.get(VARIABLE, "").strip().lower() in ("1", "true", "yes", "on")


def items(resolved: Resolved, workdir: Path) -> list[Item]:
    """Everything of the repository that a run with these settings would execute."""
    from ralph.trust import paths as trust_paths

    paths = trust_paths.items(resolved, workdir)
    if all(origin == "default" or _TYPED.fullmatch(origin) for origin in resolved.origins.values()):
        return [*_project_agent(resolved, workdir), *paths]
    found = [*_agent(resolved, workdir), *_project_agent(resolved, workdir), *paths]
    if _from_repository(resolved, "verify"):
        for command in resolved.settings.verify:
            found += _command(resolved, workdir, ("verify",), command)
    return list({(item.root, item.what, item.digest): item for item in found}.values())


def untrusted(wanted: Iterable[Item]) -> list[Item]:
    """Those that nobody has allowed as they are now."""
    return [] if permitted() else untrusted_by_record(wanted)


def untrusted_by_record(wanted: Iterable[Item]) -> list[Item]:
    """The same, whatever was said for this run only."""
    wanted = list(wanted)
    if not wanted:
        return []
    from ralph.trust import store as trust_store

    records = {root: trust_store.load(root).allowed for root in {item.root for item in wanted}}
    return [item for item in wanted if not _allowed(item, records[item.root])]


def _allowed(item: Item, allowed: dict[str, list[str]]) -> bool:
    if item.digest in allowed.get(item.what, ()):
        return True
    # a configuration that ralph wrote itself, as long as it is what was written
    return item.source is not None and file_digest(item.source) in allowed.get(_whole(item.source), ())


def starting(resolved: Resolved, workdir: Path) -> list[Item]:
    """Of these, what is started to make a plan."""
    return [item for item in items(resolved, workdir) if item.at_start]


def is_changed(item: Item) -> bool:
    """Whether something else was allowed in its place."""
    from ralph.trust import store as trust_store

    before = trust_store.load(item.root).allowed.get(item.what, [])
    return bool(before) and item.digest not in before


def remember(wanted: Iterable[Item]) -> None:
    from ralph.trust import store as trust_store

    by_root: dict[Path, dict[str, list[str]]] = {}
    for item in wanted:
        by_root.setdefault(item.root, {}).setdefault(item.what, []).append(item.digest)
    for root, things in by_root.items():
        trust_store.allow(root, things)


def remember_file(path: Path) -> None:
    """What ralph wrote for its user: all its commands, until somebody changes it."""
    from ralph.trust import store as trust_store

    trust_store.allow(path.parent, {_whole(path): [file_digest(path)]})


def require(wanted: Iterable[Item]) -> None:
    """A TrustError that names what is not trusted and says how to allow it."""
    missing = untrusted(wanted)
    if missing:
        raise TrustError(refusal(missing))


def refusal(missing: list[Item]) -> str:
    named = any(item.path for item in missing)
    return "\n".join(
        [
            f"this repository would {what_for(missing)}, and you have not said yet that you trust it:",
            *listed(missing),
            "Nothing was run. To allow it as it is now: ralph trust    For this run only: ralph run --trust",
            *(["A path that you name yourself is yours: -P FILE, --plan FILE, --cwd DIR"] if named else []),
        ]
    )


def what_for(missing: list[Item]) -> str:
    """What the repository would do, in words."""
    said = []
    if not all(item.path for item in missing):
        said.append("have its own code run")
    if any(item.path for item in missing):
        said.append("lead ralph to files outside of it")
    return " and ".join(said)


def listed(shown: list[Item]) -> list[str]:
    """For people; nothing in it can control a terminal."""
    from ralph.system.terminal import safe

    lines = []
    for item in shown:
        changed = "  (new or changed since you allowed it)" if is_changed(item) else ""
        place = f" ({item.origin})" if item.origin else ""
        if not item.text:
            path = item.root / item.what
            target = leads_out(path, item.root)
            link = f", a link to {target}" if target is not None and path.is_relative_to(item.root) else ""
            lines.append(safe(f"  file       {path}{link}{place}{changed}"))
            continue
        first, *rest = whole(item.text)
        lines.append(safe(f"  {item.what:<10} {first}") + safe(f"{place}{changed}"))
        lines += [f"  {'':<10} {safe(more)}" for more in rest]
    return lines


def whole(text: str) -> list[str]:
    """A command as lines that hide no part of it: not behind a screen of blanks, nor by its length."""
    lines: list[str] = []
    for line in _EMPTY_LINES.sub(_counted_lines, text.rstrip("\n")).split("\n"):
        shown = _BLANKS.sub(lambda found: f" <{len(found.group())} blanks> ", line)
        lines += [shown[at : at + _LINE_LENGTH] for at in range(0, max(1, len(shown)), _LINE_LENGTH)]
    if len(lines) > _LINES_SHOWN:
        left = len(lines) - _LINES_SHOWN
        half = _LINES_SHOWN // 2
        lines = [*lines[:half], f"<{left} lines that are NOT SHOWN: read them where they stand>", *lines[-half:]]
    return lines


def _counted_lines(found: re.Match[str]) -> str:
    return f"\n<{found.group().count(chr(10)) - 1} empty lines>\n"


def file_digest(path: Path) -> str:
    from ralph.trust.store import digest

    try:
        return digest(read(path, _MAX_CODE))
    except OSError as error:
        if error.errno in (errno.EFBIG, errno.EINVAL):
            raise UsageError(f"{path} cannot be run: {error.strerror}") from None
        return digest(f"unreadable: {error.strerror}".encode())


def of_files(paths: Iterable[Path], root: Path, origin: str = "", *, at_start: bool = True) -> list[Item]:
    """Files that would be executed as they are."""
    found = []
    for path in dict.fromkeys(paths):
        shown = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
        found.append(Item(shown, "", file_digest(path), root, origin, at_start=at_start))
    return found


def of_dialect(found: Found, workdir: Path) -> list[Item]:
    """The files that another convention's agent is made of."""
    from ralph.dialects.found import module

    return of_files(module(found.dialect).executables(found, workdir), workdir)


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
        # it takes the place of a known program, which is asked for its version before the start
        return _command(resolved, workdir, ("command",), settings.command, at_start=True)
    return []


def _script(resolved: Resolved, workdir: Path, value: str) -> list[Item]:
    """The script, its configuration and its fellows."""
    from ralph.dialects.found import Dialect, find

    if is_the_users_word(resolved, "agent_script"):
        return []
    found = [item for f in find(workdir) if f.dialect is Dialect.SCRIPT for item in of_dialect(f, workdir)]
    base = resolved.bases.get("agent_script", workdir)
    names = (value, f"agents/{value}.sh", f".ralph/agents/{value}.sh")
    scripts = [path for name in names for place in (base, workdir) if (path := place / name).is_file()]
    # the script is loaded with the configuration beside it
    folders = [path.parent.parent if path.parent.name == "agents" else path.parent for path in scripts]
    paths = [*(folder / "config" for folder in folders if (folder / "config").is_file()), *scripts]
    return [*found, *of_files([Path(os.path.normpath(path)) for path in paths], workdir)]


def _driver(resolved: Resolved, workdir: Path, value: str) -> list[Item]:
    """The driver and what lies beside it, and a `.ralphrc` that is more than data."""
    from ralph.dialects.driver.layer import read
    from ralph.dialects.driver.locate import here

    shown, file = read(workdir, {})
    said = file.values.get("CLAUDE_CODE_CMD")
    # It can name Claude's program, and export variables that programs obey.
    obeyed = any(a.exported for a in file.values.values()) or (said is not None and said.value not in ("", "claude"))
    found = of_files([workdir / shown] if obeyed else [], workdir)
    if is_the_users_word(resolved, "driver"):
        return found
    drivers = here(workdir)
    return [*found, *of_files(drivers if any(path.stem == value for path in drivers) else [], workdir)]


def _project_agent(resolved: Resolved, workdir: Path) -> list[Item]:
    """The agents that may be run, where their description is one that the repository brings."""
    from ralph.agents import registry

    found = []
    for name in dict.fromkeys((resolved.settings.agent, *resolved.settings.agents)):
        path = registry.project_file(name, workdir)
        found += [] if path is None else of_files([path], workdir, f"agent '{name}'")
    return found


# -- commands


def _command(
    resolved: Resolved, workdir: Path, names: tuple[str, ...], text: str, *, at_start: bool = False
) -> list[Item]:
    """The command that these settings make, and the file of the repository that it runs."""
    from ralph.trust.store import digest

    said = next((name for name in names if _from_repository(resolved, name)), None)
    if said is None:
        return []
    root = resolved.bases.get(said, workdir)
    origin = resolved.origins[said]
    source = next((file for file in resolved.files if file.parent == root), None)
    found = [Item(names[0], text, digest(text.encode("utf-8", "replace")), root, origin, source, at_start)]
    program = _program(text, (root, workdir))
    if program is not None:
        found += of_files([program], root, f"{names[0]} in {origin}", at_start=at_start)
    return found


def _program(text: str, folders: tuple[Path, ...]) -> Path | None:
    """The file that a command starts, or that it gives to an interpreter, if it lies in the repository."""
    try:
        words = shlex.split(text.partition("\n")[0], comments=True)
    except ValueError:
        words = text.split()
    words = [word for word in words if not re.match(r"[A-Za-z_]\w*=", word)]
    while words and re.fullmatch(_SHELLS, Path(words[0]).name):
        words = words[1:]
        while words and words[0].startswith("-"):
            words = words[1:]
    if not words or not words[0]:
        return None
    for folder in folders:
        path = Path(os.path.normpath(folder / words[0]))
        if path.is_file() and any(path.is_relative_to(f) for f in folders):
            return path
    return None


# -- whose word a value is


def _from_repository(resolved: Resolved, name: str) -> bool:
    if not any(_LINE.fullmatch(part) for part in resolved.origins[name].split(", ")):
        return False
    return not _is_users(resolved, name)


def is_the_users_word(resolved: Resolved, name: str) -> bool:
    """Typed, in the environment, or in a file of the user's own."""
    return _TYPED.fullmatch(resolved.origins[name]) is not None or _is_users(resolved, name)


def _is_users(resolved: Resolved, name: str) -> bool:
    """Whether it stands in a file of the user's own."""
    from ralph.system.folders import user_config_dir

    if resolved.bases.get(name) == user_config_dir():
        return True
    ralphex = Path(os.path.expanduser(os.environ.get("RALPHEX_CONFIG_DIR") or "~/.config/ralphex"))  # noqa: PTH111
    return all(
        (match := _LINE.fullmatch(part)) is not None and Path(match.group(1)) == ralphex / "config"
        for part in resolved.origins[name].split(", ")
    )


def _whole(source: Path) -> str:
    return f"all of {source.name}"
