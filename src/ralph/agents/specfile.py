"""Reads an agent's TOML file and reports everything that is wrong with it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from ralph.agents import adapters
from ralph.agents.spec import AgentSpec
from ralph.errors import nearest
from ralph.system import files
from ralph.system.tables import problems_in

if TYPE_CHECKING:
    from pathlib import Path

    from ralph.agents.spec import Invocation, SessionFlags, VersionProbe

#: The words that `tells` may contain.
TELLS = ("thinking", "tools", "usage", "cost", "session")
#: Names with a meaning of their own for `--agent`.
_RESERVED = ("auto", "custom", "demo")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_RANGE = re.compile(r"\s*(>=|<=|==|=|>|<)?\s*\d+(\.\d+)*\s*")


class SpecFile(msgspec.Struct, frozen=True):
    """One file: the agent that it describes, or its problems."""

    path: Path
    spec: AgentSpec | None
    problems: tuple[str, ...] = ()
    #: the name in the file, if it can be read
    name: str = ""

    def complaint(self) -> str:
        if len(self.problems) == 1:
            return f"{self.path}: {self.problems[0]}"
        return f"{self.path}: {len(self.problems)} problems:\n" + "\n".join(f"    {p}" for p in self.problems)


def read(path: Path, *, builtin: bool = False) -> SpecFile:
    import tomllib  # slow to import, and not always needed

    try:
        table = tomllib.loads(files.read_text(path, "strict"))
    except tomllib.TOMLDecodeError as error:
        return SpecFile(path, None, (f"this is not valid TOML: {error}",), path.stem)
    except RecursionError:
        return SpecFile(path, None, ("this is nested too deeply",), path.stem)
    except UnicodeDecodeError:
        return SpecFile(path, None, ("this is not UTF-8 text",), path.stem)
    except OSError as error:
        return SpecFile(path, None, (f"cannot be read: {error.strerror}",), path.stem)
    given = table.get("name")
    name = given if isinstance(given, str) else path.stem
    try:
        spec = msgspec.convert(table, AgentSpec)
    except msgspec.ValidationError as error:
        # It names only the first problem; `problems_in` finds all of them.
        return SpecFile(path, None, tuple(problems_in(table, AgentSpec, "")) or (str(error),), name)
    if builtin:  # the tests check these, so that each start is faster
        return SpecFile(path, spec, (), name)
    problems = tuple(check(spec))
    return SpecFile(path, None if problems else spec, problems, name)


def check(spec: AgentSpec) -> list[str]:
    """Return the problems that the types alone do not exclude."""
    found = [problem for name in (spec.name, *spec.aliases) for problem in _check_name(name)]
    if not spec.commands or not spec.invocation:
        found.append("an agent needs at least one command in commands and one [[invocation]]")
    found += _check_version(spec.version)
    for number, invocation in enumerate(spec.invocation, 1):
        found += [f"invocation[{number}].{problem}" for problem in _check_invocation(invocation)]
    found += _check_session(spec.session)
    if spec.model and not any("{model}" in argument for argument in spec.model):
        found.append("model: {model} is missing")
    if spec.tools and not any("{tools}" in argument or "{tool}" in argument for argument in spec.tools.allow):
        found.append("tools.allow: {tools} or {tool} is missing")
    unknown = [word for word in spec.tells if word not in TELLS]
    return found + [f"tells: '{word}' is not one of {', '.join(TELLS)}{nearest(word, TELLS)}" for word in unknown]


def _check_name(name: str) -> list[str]:
    if not _NAME.fullmatch(name):
        return [f"'{name}' is not a valid name for an agent: use only letters, digits, '.', '_' and '-'"]
    return [f"the name '{name}' is reserved: choose another"] if name in _RESERVED else []


def _check_version(version: VersionProbe) -> list[str]:
    from ralph.system.patterns import PatternError, groups  # late: built-in agents are not checked

    found = []
    try:
        if groups(version.pattern) < 1:
            found.append("version.pattern needs a group around the version, like (\\d+\\.\\d+)")
    except PatternError as error:
        found.append(f"version.pattern is not a regular expression: {error}")
    given = [("minimum", version.minimum or ""), *(("tested", text) for text in version.tested)]
    found += [f"version.{key}: '{text}' is not a version" for key, text in given if text and not re.search(r"\d", text)]
    return found


def _check_invocation(invocation: Invocation) -> list[str]:
    found = _check_session(invocation.session)
    known = adapters.names()
    name = invocation.transcript
    if name not in known:
        found.append(f"transcript: there is no adapter '{name}'{nearest(name, known)}; use {', '.join(known)}")
    parts = [part for part in invocation.versions.split(",") if part.strip() and not _RANGE.fullmatch(part)]
    return found + [f"versions: '{part.strip()}' is not a range like >=1.2,<2" for part in parts]


def _check_session(session: SessionFlags | None) -> list[str]:
    if session is None or any("{session}" in argument for argument in session.resume):
        return []
    return ["session.resume: {session} is missing"]
