"""Detects which convention a directory follows."""

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
    """The conventions, in order of precedence."""

    ORCHESTRATOR = "orchestrator"  # ralph.yml, which is ralph's own as well
    PROVIDER = "provider"  # .ralphex/config
    DRIVER = "driver"  # .ralphrc, .ralph/PROMPT.md
    SCRIPT = "script"  # agents/*.sh and config


#: The configuration of these is a program. Reading it executes it, so it needs approval first.
RUN_TO_BE_READ = frozenset({Dialect.SCRIPT})


class Found(msgspec.Struct, frozen=True):
    dialect: Dialect
    #: the file that led to the detection
    path: Path
    why: str


def find(workdir: Path) -> list[Found]:
    """All conventions that this directory follows, the one with the highest precedence first."""
    found = []
    own = yamlfile.find_upward(workdir)
    if own is not None:
        found.append(Found(Dialect.ORCHESTRATOR, own, f"found {own.name}"))
    if (workdir / ".ralphex" / "config").is_file():
        found.append(Found(Dialect.PROVIDER, workdir / ".ralphex" / "config", "found .ralphex/config"))
    for name in (".ralphrc", ".ralph/.ralphrc", ".ralph/PROMPT.md"):
        if (workdir / name).is_file():
            found.append(Found(Dialect.DRIVER, workdir / name, f"found {name}"))
            break
    for folder in ("", ".ralph/"):  # that tool can be installed in the .ralph folder of another project
        config = workdir / f"{folder}config"
        if config.is_file() and any((workdir / f"{folder}agents").glob("*.sh")):
            found.append(Found(Dialect.SCRIPT, config, f"found {folder}agents/*.sh and {folder}config"))
            break
    return found


def user_file(environ: Mapping[str, str]) -> Path:
    """The user's own configuration for the provider convention."""
    folder = environ.get("RALPHEX_CONFIG_DIR") or "~/.config/ralphex"
    return Path(os.path.expanduser(folder)) / "config"  # noqa: PTH111 - unlike Path, works without a home


def choose(workdir: Path, wanted: str) -> tuple[Found | None, list[str]]:
    """The convention to follow, and notes for the user. `wanted` is a dialect's name, `auto` or `none`."""
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
            own = first.dialect is Dialect.ORCHESTRATOR
            used = first.path.name if own else f"the {first.dialect} convention ({first.why})"
            notes.append(f"using {used}, not the files of another convention: {names}; to use those: --dialect NAME")
        return first, notes
    if wanted not in list(Dialect):
        known = [*Dialect, "auto", "none"]
        raise UsageError(f"there is no dialect '{wanted}'{nearest(wanted, known)}; expected one of {', '.join(known)}")
    chosen = next((f for f in found if f.dialect == wanted), None)
    if chosen is None:
        raise UsageError(f"--dialect {wanted}: there are no files of this convention here")
    return chosen, []


def follows_plan(resolved: Resolved) -> bool:
    """Whether the run follows a plan file. A prompt overrides a plan in the settings, but not the flag --plan."""
    settings, origins = resolved.settings, resolved.origins
    if settings.plan is None:
        return False
    prompts = [origins[name] for name in ("prompt", "prompt_file") if getattr(settings, name) is not None]
    if not prompts:
        return True
    if origins["plan"].startswith("--") and prompts[0].startswith("-"):
        raise UsageError(f"--plan and {prompts[0]} cannot be used together")
    return origins["plan"].startswith("--")
