"""Which convention a directory follows, and why we think so."""

from __future__ import annotations

import importlib
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, cast

import msgspec

from ralph.config import yamlfile
from ralph.errors import UsageError, nearest

if TYPE_CHECKING:
    from pathlib import Path

    from ralph.config.filelayer import FileLayer
    from ralph.config.layers import Resolved
    from ralph.planning.launch import Launch


class Dialect(StrEnum):
    """In the order in which they are looked for; the first that is there wins."""

    ORCHESTRATOR = "orchestrator"  # ralph.yml: our own
    PROVIDER = "provider"  # .ralphex/config
    DRIVER = "driver"  # .ralphrc, .ralph/PROMPT.md
    SCRIPT = "script"  # agents/*.sh and config


class Module(Protocol):
    """What a dialect's module has."""

    def layer(self, found: Found, workdir: Path) -> FileLayer:
        """Its files as settings, with lines as origins; mistakes and remarks are kept in the layer."""

    def launch(self, resolved: Resolved, workdir: Path) -> Launch:
        """How its agent is started."""

    def executables(self, found: Found, workdir: Path) -> list[Path]:
        """The files of the repository that would be executed; nothing is run to know them."""


#: The modules that act on a convention's files, and the setting that chooses its kind of agent.
MODULES: dict[Dialect, tuple[str, str]] = {
    Dialect.PROVIDER: ("ralph.dialects.provider", "claude_command"),
    Dialect.DRIVER: ("ralph.dialects.driver", "driver"),
    Dialect.SCRIPT: ("ralph.dialects.script", "agent_script"),
}


#: Their configuration is a program: reading it runs it, so it needs the user's trust before that.
RUN_TO_BE_READ = frozenset({Dialect.SCRIPT})


class Found(msgspec.Struct, frozen=True):
    dialect: Dialect
    #: the file that decided
    path: Path
    why: str


def find(workdir: Path) -> list[Found]:
    """All conventions that this directory shows, the strongest first."""
    found = []
    own = yamlfile.find_upward(workdir)
    if own is not None:
        found.append(Found(Dialect.ORCHESTRATOR, own, f"there is {own.name}"))
    if (workdir / ".ralphex" / "config").is_file():
        found.append(Found(Dialect.PROVIDER, workdir / ".ralphex" / "config", "there is .ralphex/config"))
    for name in (".ralphrc", ".ralph/.ralphrc", ".ralph/PROMPT.md"):
        if (workdir / name).is_file():
            found.append(Found(Dialect.DRIVER, workdir / name, f"there is {name}"))
            break
    for folder in ("", ".ralph/"):  # the second is where that tool is put in a project of somebody else
        config = workdir / f"{folder}config"
        if config.is_file() and any((workdir / f"{folder}agents").glob("*.sh")):
            found.append(Found(Dialect.SCRIPT, config, f"there are {folder}agents/*.sh and {folder}config"))
            break
    return found


def choose(workdir: Path, wanted: str) -> tuple[Found | None, list[str]]:
    """The convention to follow (`auto`: the first that is there; `none`), and what the user should know."""
    if wanted == "none":
        return None, []
    found = [f for f in find(workdir) if f.dialect is Dialect.ORCHESTRATOR or f.dialect in MODULES]
    if wanted == "auto":
        if not found:
            return None, []
        first, *others = found
        notes = []
        if others:
            names = "; ".join(f"{f.dialect} ({f.why})" for f in others)
            notes.append(f"the {first.dialect} convention is followed ({first.why}), not {names}; --dialect decides")
        return first, notes
    if wanted not in list(Dialect):
        known = [*Dialect, "auto", "none"]
        raise UsageError(f"there is no dialect '{wanted}'{nearest(wanted, known)}; there are: {', '.join(known)}")
    chosen = next((f for f in found if f.dialect == wanted), None)
    if chosen is None:
        raise UsageError(f"--dialect {wanted}: this directory has no files of that convention")
    return chosen, []


def module(dialect: Dialect) -> Module:
    return cast("Module", importlib.import_module(MODULES[dialect][0]))
