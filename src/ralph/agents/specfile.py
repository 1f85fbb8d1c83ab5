"""Reading an agent's TOML file; of a wrong one, everything that is wrong."""

from __future__ import annotations

import re
import tomllib
from enum import StrEnum
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from ralph.agents.spec import AgentSpec
from ralph.errors import nearest

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
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        return SpecFile(path, None, (f"this is not valid TOML: {error}",), path.stem)
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
        return SpecFile(path, None, tuple(_in_table(table, AgentSpec, "")) or (str(error),), name)
    if builtin:  # the tests check ours: a start should not
        return SpecFile(path, spec, (), name)
    problems = tuple(check(spec))
    return SpecFile(path, None if problems else spec, problems, name)


def _in_table(table: Any, kind: type[msgspec.Struct], where: str) -> list[str]:
    """What does not fit the schema, key by key."""
    if not isinstance(table, dict):
        return [f"{where.rstrip('.')}: expected a table, got {_said(table)}"]
    fields = {f.name: f for f in msgspec.structs.fields(kind)}
    found = [f"there is no key '{where}{key}'{nearest(key, fields)}" for key in table if key not in fields]
    for name, field in fields.items():
        if name not in table:
            if field.required:
                found.append(f"'{where}{name}' is missing")
            continue
        value = table[name]
        inner = _struct_in(field.type)
        if inner is None:
            found += _in_value(value, field.type, f"{where}{name}")
        elif isinstance(value, list):
            for number, item in enumerate(value, 1):
                found += _in_table(item, inner, f"{where}{name}[{number}].")
        elif getattr(field.type, "__origin__", None) is tuple:
            found.append(f"{where}{name}: expected [[{where}{name}]] tables, got {_said(value)}")
        else:
            found += _in_table(value, inner, f"{where}{name}.")
    return found


def _in_value(value: Any, kind: Any, where: str) -> list[str]:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        what, _, at = str(error).partition(" - at `$")
        inside = at.rstrip("`")
        text = what[:1].lower() + what[1:].replace("`", "")
        if isinstance(kind, type) and issubclass(kind, StrEnum):
            options = [option.value for option in kind]
            text = f"expected one of {', '.join(options)}, not {_said(value)}{nearest(str(value), options)}"
        return [f"{where}{inside}: {text}"]
    return []


def _struct_in(kind: Any) -> type[msgspec.Struct] | None:
    """The struct that a field holds: itself, or-nothing, or a list of them."""
    kinds = (kind, *get_args(kind))
    return next((k for k in kinds if isinstance(k, type) and issubclass(k, msgspec.Struct)), None)


def _said(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"


def check(spec: AgentSpec) -> list[str]:
    """What the types alone do not say."""
    from ralph.transcripts import registry as transcripts

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
