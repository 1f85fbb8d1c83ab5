"""Reading an agent's TOML file; of a wrong one, everything that is wrong."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from ralph.agents.spec import AgentSpec
from ralph.errors import nearest
from ralph.system import files
from ralph.system.tables import problems_in

if TYPE_CHECKING:
    from pathlib import Path

#: What `tells` may hold.
TELLS = ("thinking", "tools", "usage", "cost", "session")
#: Names that mean something else to `--agent`.
_RESERVED = ("auto", "custom", "demo")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_RANGE = re.compile(r"\s*(>=|<=|==|=|>|<)?\s*\d+(\.\d+)*\s*")


class SpecFile(msgspec.Struct, frozen=True):
    """One file: the agent it describes, or what is wrong with it."""

    path: Path
    spec: AgentSpec | None
    problems: tuple[str, ...] = ()
    #: the name it gives itself, as far as that can be read
    name: str = ""

    def complaint(self) -> str:
        if len(self.problems) == 1:
            return f"{self.path}: {self.problems[0]}"
        return f"{self.path}: {len(self.problems)} things are wrong:\n" + "\n".join(f"    {p}" for p in self.problems)


def read(path: Path, *, builtin: bool = False) -> SpecFile:
    import tomllib  # where no file is read, nobody waits for it

    try:
        table = tomllib.loads(files.read_text(path, "strict"))
    except tomllib.TOMLDecodeError as error:
        return SpecFile(path, None, (f"this is not valid TOML: {error}",), path.stem)
    except RecursionError:
        return SpecFile(path, None, ("it is nested too deeply",), path.stem)
    except UnicodeDecodeError:
        return SpecFile(path, None, ("this is not UTF-8 text",), path.stem)
    except OSError as error:
        return SpecFile(path, None, (f"cannot be read: {error.strerror}",), path.stem)
    given = table.get("name")
    name = given if isinstance(given, str) else path.stem
    try:
        spec = msgspec.convert(table, AgentSpec)
    except msgspec.ValidationError as error:
        # It names one problem; a second look finds the others. Should that see none, its word stands.
        return SpecFile(path, None, tuple(problems_in(table, AgentSpec, "")) or (str(error),), name)
    if builtin:  # the tests check ours: a start should not
        return SpecFile(path, spec, (), name)
    problems = tuple(check(spec))
    return SpecFile(path, None if problems else spec, problems, name)


def check(spec: AgentSpec) -> list[str]:
    """What the types alone do not say."""
    from ralph.agents import adapters as transcripts

    found = []
    for name in (spec.name, *spec.aliases):
        if not _NAME.fullmatch(name):
            found.append(f"'{name}' is no name for an agent: letters, digits, '.', '_' and '-' only")
        elif name in _RESERVED:
            found.append(f"'{name}' is a name that ralph keeps for itself: take another")
    if not spec.commands or not spec.invocation:
        found.append("an agent needs at least one of commands and one [[invocation]]")
    found += _check_version(spec)
    known = transcripts.names()
    for number, invocation in enumerate(spec.invocation, 1):
        name = invocation.transcript
        if name not in known:
            hint = nearest(name, known)
            found.append(
                f"invocation[{number}].transcript: there is no adapter '{name}'{hint}; there are: {', '.join(known)}"
            )
        found += [
            f"invocation[{number}].versions: '{part.strip()}' is no range like >=1.2,<2"
            for part in invocation.versions.split(",")
            if part.strip() and not _RANGE.fullmatch(part)
        ]
        if invocation.session and not any("{session}" in a for a in invocation.session.resume):
            found.append(f"invocation[{number}].session.resume: {{session}} must stand somewhere in it")
    if spec.session and not any("{session}" in a for a in spec.session.resume):
        found.append("session.resume: {session} must stand somewhere in it")
    if spec.model and not any("{model}" in a for a in spec.model):
        found.append("model: {model} must stand somewhere in it")
    if spec.tools and not any("{tools}" in a or "{tool}" in a for a in spec.tools.allow):
        found.append("tools.allow: {tools} or {tool} must stand somewhere in it")
    found += [f"tells: '{word}' is none of {', '.join(TELLS)}{nearest(word, TELLS)}" for word in _strange(spec.tells)]
    return found


def _check_version(spec: AgentSpec) -> list[str]:
    found = []
    try:
        if re.compile(spec.version.pattern).groups < 1:
            found.append("version.pattern needs a group around the version, like (\\d+\\.\\d+)")
    except re.error as error:
        found.append(f"version.pattern is not a regular expression: {error}")
    given = [("minimum", spec.version.minimum or "")] + [("tested", version) for version in spec.version.tested]
    found += [f"version.{name}: '{text}' is no version" for name, text in given if text and not re.search(r"\d", text)]
    return found


def _strange(words: tuple[str, ...]) -> list[str]:
    return [word for word in words if word not in TELLS]
