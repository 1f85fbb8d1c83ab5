"""Finds specs by name: the user's own first, then the built-in ones."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ralph.agents import specfile
from ralph.errors import UsageError, nearest
from ralph.system.folders import user_config_dir

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from ralph.agents.spec import AgentSpec
    from ralph.agents.specfile import SpecFile

    #: Whether the user has approved a spec that the project brings.
    Approves: TypeAlias = Callable[[Path], bool]

_HERE = Path(__file__).parent


class Own(msgspec.Struct, frozen=True):
    """The user's own agents."""

    specs: dict[str, AgentSpec]
    #: the file of each
    paths: dict[str, Path]
    broken: tuple[SpecFile, ...] = ()

    def of(self, name: str) -> AgentSpec | None:
        """The agent of that name or alias."""
        return self.specs.get(name) or next((s for s in self.specs.values() if name in s.aliases), None)


_NONE = Own({}, {})


def load(path: Path) -> AgentSpec:
    """Reads one file. A UsageError lists everything that is wrong with it."""
    file = specfile.read(path)
    if file.spec is None:
        raise UsageError(file.complaint())
    return file.spec


def python() -> str:
    """The program that runs the agents that are part of ralph."""
    return sys.executable


def own_folder() -> Path:
    return user_config_dir() / "agents"


def project_files(workdir: Path) -> list[Path]:
    """Specs that the project brings. A spec starts programs, so it is used only if the user approved it."""
    return sorted((workdir / ".ralph" / "agents").glob("*.toml"))


def project_file(name: str, workdir: Path) -> Path | None:
    """The project's spec of that name. It cannot replace an agent that is built in or the user's own."""
    if not project_files(workdir):
        return None
    mine = own()
    taken = {n for spec in _builtin_specs() for n in (spec.name, *spec.aliases)} | {f.name for f in mine.broken}
    if name in taken or mine.of(name) is not None:
        return None
    inside = workdir.resolve()
    for path in project_files(workdir):
        if path.resolve().is_relative_to(inside):  # a link out of the project is not the project's
            spec = specfile.read(path).spec
            if spec is not None and name in (spec.name, *spec.aliases):
                return path
    return None


def _project(name: str, workdir: Path, approved: Approves) -> AgentSpec | None:
    path = project_file(name, workdir)
    return specfile.read(path).spec if path is not None and approved(path) else None


def own() -> Own:
    """The user's agents; a file that has changed is read again."""
    try:
        files = sorted(own_folder().glob("*.toml"))
        stamps = tuple((path, path.stat().st_mtime_ns) for path in files)
    except OSError:  # unreadable, or just deleted
        return _NONE
    return _own(stamps) if stamps else _NONE


@cache
def _own(files: tuple[tuple[Path, int], ...]) -> Own:
    read = [specfile.read(path) for path, _ in files]
    good = [_without_clash(file, read) for file in read]
    specs = {file.spec.name: file.spec for file in good if file.spec is not None}
    paths = {file.spec.name: file.path for file in good if file.spec is not None}
    return Own(specs, paths, tuple(file for file in good if file.spec is None))


def _without_clash(file: SpecFile, files: list[SpecFile]) -> SpecFile:
    """The file, or its problems if one of its names also belongs to another agent: then neither is used."""
    if file.spec is None:
        return file
    problems = []
    names = (file.spec.name, *file.spec.aliases)
    problems += [f"it uses the name '{name}' twice" for name in sorted({n for n in names if names.count(n) > 1})]
    for other in files:
        if other.spec is not None and other.path != file.path:
            both = sorted({*names} & {other.spec.name, *other.spec.aliases})
            problems += [f"the name '{name}' is also used by {other.path.name}: change one of them" for name in both]
    replaced = {f.spec.name for f in files if f.spec is not None}
    for builtin in _builtin_specs():
        if builtin.name in replaced:
            continue
        if builtin.name in file.spec.aliases:
            problems.append(
                f"the alias '{builtin.name}' is the name of a built-in agent: to replace that agent, "
                f'write name = "{builtin.name}"'
            )
        problems += [
            f"the name '{name}' is an alias of the built-in agent {builtin.name}: choose another"
            for name in names
            if name in builtin.aliases
        ]
    return msgspec.structs.replace(file, spec=None, problems=tuple(problems)) if problems else file


def builtin_names() -> list[str]:
    return sorted(p.parent.name.replace("_", "-") for p in _HERE.glob("*/spec.toml"))


def builtin_file(name: str) -> Path:
    """The spec of a built-in agent; its folder is a Python package, whose name cannot hold a hyphen."""
    return _HERE / name.replace("-", "_") / "spec.toml"


def _builtin(name: str) -> AgentSpec:
    file = specfile.read(builtin_file(name), builtin=True)
    if file.spec is None:
        raise UsageError(file.complaint())
    return file.spec


@cache
def _builtin_specs() -> tuple[AgentSpec, ...]:
    return tuple(_builtin(name) for name in builtin_names())


def names() -> list[str]:
    mine = own()
    return sorted({*builtin_names(), *mine.specs} - {file.name for file in mine.broken})


def all_specs() -> tuple[AgentSpec, ...]:
    """The agents that can be used. If a file that replaces a built-in agent is broken, neither is used:

    the file may forbid what the built-in agent allows.
    """
    mine = own()
    hidden = {*mine.specs, *(file.name for file in mine.broken)}
    return (*(s for s in _builtin_specs() if s.name not in hidden), *mine.specs.values())


def get(name: str, workdir: Path | None = None, approved: Approves = lambda _: False) -> AgentSpec:
    """A spec by its name or an alias. `workdir` may have specs of its own; only approved ones are used."""
    mine = own()
    spec = mine.of(name)
    if spec is not None:
        return spec
    for file in mine.broken:
        if name in (file.name, file.path.stem):
            raise UsageError(f"the agent '{name}' cannot be used:\n  {file.complaint()}")
    if name in builtin_names():
        return _builtin(name)
    for spec in _builtin_specs():
        if name in spec.aliases:
            return get(spec.name)  # the user's own may replace it
    theirs = _project(name, workdir, approved) if workdir is not None else None
    if theirs is not None:
        return theirs
    known = [*names(), "custom"]
    raise UsageError(
        f"there is no agent '{name}'{nearest(name, known)}; there are: {', '.join(known)}.\n"
        "  To run any other program: --agent-cmd 'COMMAND'. To make it an agent, add a file in "
        f"{own_folder()}." + not_approved(project_files(workdir) if workdir else [])
    )


def not_approved(files: list[Path]) -> str:
    """Why the project's own agents cannot be used, on a line of its own; empty if it has none."""
    if not files:
        return ""
    shown = ", ".join(f".ralph/agents/{path.name}" for path in files)
    return (
        f"\n  This project brings agents of its own ({shown}). Such a file decides which programs are started,\n"
        "  so ralph uses it only if you ask for the agent by its own name and have approved it (`ralph trust`)."
    )


def warnings() -> list[str]:
    """The user's files that cannot be used. They do not stop runs with other agents."""
    return [f"this agent is ignored: {file.complaint()}" for file in own().broken]
