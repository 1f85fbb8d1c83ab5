"""The first step from a command line to a launch: reads all settings and finds the working directory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ralph.config.convert import split
from ralph.config.layers import Resolved, resolve, users_own
from ralph.config.settings import BY_NAME
from ralph.dialects.detect import RUN_TO_BE_READ, Dialect, choose, find
from ralph.dialects.modules import AGENT_SETTINGS, module
from ralph.errors import UsageError
from ralph.launching.environment import withholding, without
from ralph.launching.prompt import looks_like_a_file
from ralph.planning.approvals import looser_settings, of_config, of_dialect
from ralph.trust.approval import VARIABLE, Trust, required

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from ralph.config.filelayer import FileLayer
    from ralph.trust.items import Item

    #: Takes what needs approval; returns a trust that covers all of it, or raises a TrustError.
    Permit: TypeAlias = Callable[[Trust, list[Item]], Trust]


class Settled(msgspec.Struct, frozen=True):
    """The settings of a run, its working directory, and what the user has approved so far."""

    resolved: Resolved
    workdir: Path
    trust: Trust


def settle(
    flags: dict[str, Any],
    config_file: str | None,
    trust: Trust,
    permit: Permit = required,
    environ: Mapping[str, str] | None = None,
) -> Settled:
    """Reads all settings. Some files must be run to be read; `permit` is called before that."""
    original = dict(os.environ if environ is None else environ)
    workdir = start(flags, original)
    name = config_file or original.get("RALPH_CONFIG")
    config = Path(os.path.abspath(Path(name).expanduser())) if name else None  # noqa: PTH100 - links stay as named
    # Reading some files runs code, which must not see the variables that a flag or RALPH_ENV_DENY withholds.
    denied = split(BY_NAME["env_deny"], flags.get("env_deny") or original.get("RALPH_ENV_DENY", ""))
    visible = without(original, denied)
    layer, follows, notes, trust = _dialect(workdir, flags, config, visible, trust, permit)
    resolved = resolve(workdir, flags, config, environ=visible, dialect=layer)
    trust, may_loosen = _may_loosen(resolved, trust)
    if may_loosen:
        loosened = resolved.loosened
        resolved = resolve(workdir, flags, config, environ=visible, dialect=layer, may_loosen=may_loosen)
        resolved = msgspec.structs.replace(resolved, loosened=loosened)
    resolved = withholding(resolved, original, VARIABLE)
    if (
        notes
        and layer is None
        and all(getattr(resolved.settings, name) is not None for name in _agents_of_others(workdir))
    ):
        notes = []  # the ralph.yml names an agent of each of the other conventions, so it is what the user wants
    resolved = msgspec.structs.replace(resolved, follows=follows, warnings=[*notes, *resolved.warnings])
    base = resolved.bases.get("cwd")
    if base is not None:  # a file sets it
        workdir = working_directory(str(base / Path(resolved.settings.cwd or ".").expanduser()))
    file = looks_like_a_file(resolved, workdir)
    return Settled(resolved.warn(file) if file else resolved, workdir, trust)


def _may_loosen(resolved: Resolved, trust: Trust) -> tuple[Trust, frozenset[str]]:
    """The guards that the user lets the project loosen. Without an approval they stay as they are; nobody is asked."""
    wanted = looser_settings(resolved)
    trust = trust.recalling(wanted)
    missing = trust.missing(wanted)
    approved = (each for each, item in zip(resolved.loosened, wanted, strict=True) if item not in missing)
    return trust, frozenset(each.name for each in approved)


def _agents_of_others(workdir: Path) -> list[str]:
    """The settings that choose the agents of the other conventions whose files are here."""
    return [AGENT_SETTINGS[found.dialect] for found in find(workdir) if found.dialect in AGENT_SETTINGS]


def start(flags: dict[str, Any], environ: Mapping[str, str]) -> Path:
    """The directory where the search for settings begins."""
    return working_directory(flags.get("cwd") or environ.get("RALPH_CWD"))


def working_directory(cwd: str | None) -> Path:
    """The current directory, or `--cwd`. A UsageError if it does not exist."""
    try:
        here = Path.cwd()
    except OSError:
        raise UsageError("the working directory is gone: change to one that exists") from None
    workdir = here if cwd is None else (here / Path(cwd).expanduser())
    if not workdir.is_dir():
        raise UsageError(f"the working directory {workdir} does not exist or is not a directory")
    if not os.access(workdir, os.R_OK | os.X_OK):
        raise UsageError(f"you have no permission to enter the working directory {workdir}")
    return Path(os.path.abspath(workdir))  # noqa: PTH100 - symlinks stay as the user named them


def _dialect(
    workdir: Path,
    flags: dict[str, Any],
    config: Path | None,
    environ: dict[str, str],
    trust: Trust,
    permit: Permit,
) -> tuple[FileLayer | None, str, list[str], Trust]:
    """The settings in another convention's files, which convention that is and why, notes about it, and the trust.

    Other conventions' files are ignored if the user named a ralph.yml.
    """
    wanted = str(flags.get("dialect") or environ.get("RALPH_DIALECT") or "auto")
    found, notes = choose(workdir, "none" if config is not None and wanted == "auto" else wanted)
    if config is None or found is not None:
        trust = permit(trust, of_config(workdir, found))
    if found is None or found.dialect is Dialect.ORCHESTRATOR:
        return None, "", notes, trust
    typed = flags.get("agent_script") or environ.get("RALPH_AGENT_SCRIPT")
    if found.dialect in RUN_TO_BE_READ:
        environ = without(environ, users_own(environ).get("env_deny", ()))
        if not typed:
            trust = permit(trust, of_dialect(found, workdir, environ))
    layer = module(found.dialect).layer(found, workdir, environ)
    return layer, f"{found.dialect} convention: {found.why}", notes, trust
