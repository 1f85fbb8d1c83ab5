"""Finding specs by name: the built-in ones, and the user's own, which come first."""

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
    #: where each of them is
    paths: dict[str, Path]
    broken: tuple[SpecFile, ...] = ()

    def of(self, name: str) -> AgentSpec | None:
        """By its name or one of its other names."""
        return self.specs.get(name) or next((s for s in self.specs.values() if name in s.aliases), None)


_NONE = Own({}, {})


def load(path: Path) -> AgentSpec:
    """One file; a broken one is a UsageError that says all that is wrong with it."""
    file = specfile.read(path)
    if file.spec is None:
        raise UsageError(file.complaint())
    return file.spec


def python() -> str:
    """What runs the agents that are part of ralph."""
    return sys.executable


def own_folder() -> Path:
    return user_config_dir() / "agents"


def project_files(workdir: Path) -> list[Path]:
    """Specs that the project brings. A spec starts programs: they are used only when the user trusts them."""
    return sorted((workdir / ".ralph" / "agents").glob("*.toml"))


def project_file(name: str, workdir: Path) -> Path | None:
    """The project's spec of that name. It cannot stand in for an agent that is built in or the user's own."""
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
    """Read again when a file was changed."""
    try:
        files = sorted(own_folder().glob("*.toml"))
        stamps = tuple((path, path.stat().st_mtime_ns) for path in files)
    except OSError:  # unreadable, or gone in this moment
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
    """A name must lead to one agent; where it leads to two, neither is used."""
    if file.spec is None:
        return file
    problems = []
    names = (file.spec.name, *file.spec.aliases)
    problems += [f"it gives the name '{name}' twice" for name in sorted({n for n in names if names.count(n) > 1})]
    for other in files:
        if other.spec is not None and other.path != file.path:
            both = sorted({*names} & {other.spec.name, *other.spec.aliases})
            problems += [f"the name '{name}' is also given by {other.path.name}: change one of them" for name in both]
    replaced = {f.spec.name for f in files if f.spec is not None}
    for builtin in _builtin_specs():
        if builtin.name in replaced:
            continue
        if builtin.name in file.spec.aliases:
            problems.append(
                f"the other name '{builtin.name}' is that of a built-in agent: to replace that one, "
                f'say name = "{builtin.name}"'
            )
        problems += [
            f"the name '{name}' is another name of the built-in agent {builtin.name}: take another"
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
    """Those that can be used. A built-in one does not step in for a file that would replace it but is broken:

    it may hold back what the built-in one allows.
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
            return get(spec.name)  # which may be the user's own in its place
    theirs = _project(name, workdir, approved) if workdir is not None else None
    if theirs is not None:
        return theirs
    known = [*names(), "custom"]
    raise UsageError(
        f"there is no agent '{name}'{nearest(name, known)}; there are: {', '.join(known)}.\n"
        "  Any other program can be run with --agent-cmd 'COMMAND'; a file in "
        f"{own_folder()} makes it an agent of its own." + not_approved(project_files(workdir) if workdir else [])
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
    """The user's files that cannot be used; runs with other agents go on."""
    return [f"this agent is left out: {file.complaint()}" for file in own().broken]
