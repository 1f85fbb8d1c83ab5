"""Finding specs by name."""

from __future__ import annotations

import re
import sys
import tomllib
from functools import cache
from pathlib import Path

import msgspec

from ralph.agents.spec import AgentSpec
from ralph.errors import UsageError, nearest

_BUILTIN = Path(__file__).parent / "builtin"


def load(path: Path) -> AgentSpec:
    """One file; a broken one is a UsageError that says what is wrong with it."""
    try:
        spec = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), AgentSpec)
        _check(spec)
        return spec
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: this is not valid TOML: {error}") from None
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {error}") from None
    except re.error as error:
        raise UsageError(f"{path}: version.pattern is not a regular expression: {error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: this is not UTF-8 text") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None


def _check(spec: AgentSpec) -> None:
    """What the types alone do not say."""
    if not spec.commands or not spec.invocation:
        raise msgspec.ValidationError("an agent needs at least one of commands and one [[invocation]]")
    if re.compile(spec.version.pattern).groups < 1:
        raise msgspec.ValidationError("version.pattern needs a group around the version, like (\\d+\\.\\d+)")


def python() -> str:
    """What runs the agents that are part of ralph."""
    return sys.executable


def names() -> list[str]:
    return sorted(p.stem for p in _BUILTIN.glob("*.toml"))


@cache
def all_specs() -> tuple[AgentSpec, ...]:
    return tuple(load(_BUILTIN / f"{name}.toml") for name in names())


def get(name: str) -> AgentSpec:
    """A spec by its name or one of its other names."""
    if name in names():
        return load(_BUILTIN / f"{name}.toml")
    for spec in all_specs():
        if name in spec.aliases:
            return spec
    known = [*names(), "custom"]
    raise UsageError(
        f"there is no agent '{name}'{nearest(name, known)}; there are: {', '.join(known)}.\n"
        "  Any other program can be run with --agent-cmd 'COMMAND'."
    )
