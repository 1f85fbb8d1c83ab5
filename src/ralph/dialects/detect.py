"""Which convention a directory follows, and why we think so."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ralph.config import yamlfile
from ralph.errors import UsageError, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ralph.config.layers import Resolved


class Dialect(StrEnum):
    """In the order in which they are looked for; the first that is there wins."""

    ORCHESTRATOR = "orchestrator"  # ralph.yml: our own
    PROVIDER = "provider"  # .ralphex/config
    DRIVER = "driver"  # .ralphrc, .ralph/PROMPT.md
    SCRIPT = "script"  # agents/*.sh and config


#: Their configuration is a program: reading it runs it, so it needs approval before that.
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


def user_file(environ: Mapping[str, str]) -> Path:
    """The provider convention's configuration of the user's own."""
    folder = environ.get("RALPHEX_CONFIG_DIR") or "~/.config/ralphex"
    return Path(os.path.expanduser(folder)) / "config"  # noqa: PTH111 - a user without a home is no reason to fail


def choose(workdir: Path, wanted: str) -> tuple[Found | None, list[str]]:
    """The convention to follow (`auto`: the first that is there; `none`), and what the user should know."""
    if wanted == "none":
        return None, []
    found = find(workdir)
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


def follows_plan(resolved: Resolved) -> bool:
    """Whether the run follows a plan file. A given prompt overrides a plan that was found, not one that was named."""
    settings, origins = resolved.settings, resolved.origins
    if settings.plan is None:
        return False
    prompts = [origins[name] for name in ("prompt", "prompt_file") if getattr(settings, name) is not None]
    if not prompts:
        return True
    if origins["plan"].startswith("--") and prompts[0].startswith("-"):
        raise UsageError(f"--plan and {prompts[0]} are two answers to one question: give one of them")
    return origins["plan"].startswith("--")
