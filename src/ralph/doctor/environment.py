"""Checks the environment of a run: git, the terminal, the configuration, the directory, the disk."""

from __future__ import annotations

import os
import shutil
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from ralph.agents import registry
from ralph.config.settings import Ui
from ralph.journal.alive import holders, is_directory_locked
from ralph.journal.layout import StatePaths
from ralph.journal.lock import holder_of
from ralph.judging.prices import Prices, package_installed
from ralph.planning.approvals import items_to_approve
from ralph.system import cgroup, short
from ralph.system import git as ask_git
from ralph.system.programs import which
from ralph.system.text import count
from ralph.trust.describe import refusal
from ralph.ui.choose import choose

if TYPE_CHECKING:
    from pathlib import Path

    from ralph.config.layers import Resolved
    from ralph.planning.settle import Settled

_NOT_CHECKED = "not checked, because the configuration was not read"
_LOW, _FULL = 1 << 30, 16 << 20


class State(StrEnum):
    OK = "ok"
    WARNING = "warning"
    #: a run cannot start
    PROBLEM = "problem"


class Check(msgspec.Struct, frozen=True):
    name: str
    state: State
    text: str
    facts: dict[str, Any] = {}


def check_environment(settled: Settled, config_problem: str | None, prices: Prices) -> list[Check]:
    resolved, workdir = settled.resolved, settled.workdir
    return [
        config(resolved, config_problem),
        directory(workdir),
        disk(workdir),
        other_run(workdir),
        git(workdir),
        bash(),
        processes(),
        terminal(resolved.settings.ui),
        own_agents(),
        approved(settled) if config_problem is None else Check("trust", State.WARNING, _NOT_CHECKED),
        price_table(prices),
    ]


def config(resolved: Resolved, problem: str | None) -> Check:
    files = [str(path) for path in resolved.files]
    facts = {"files": files, "problem": problem, "warnings": resolved.warnings}
    if problem is not None:
        return Check("config", State.PROBLEM, problem, facts)
    text = ", ".join(filter(None, [resolved.follows, *files])) or "no ralph.yml found; using defaults"
    if resolved.warnings:
        return Check("config", State.WARNING, "\n".join([text, *resolved.warnings]), facts)
    return Check("config", State.OK, text, facts)


def directory(workdir: Path) -> Check:
    state = StatePaths(workdir).root
    wrong = next((path for path in (workdir, state) if path.exists() and not os.access(path, os.W_OK | os.X_OK)), None)
    if state.exists() and not state.is_dir():
        wrong = state
    facts = {"path": str(workdir), "writable": wrong is None}
    if wrong is not None:
        return Check("directory", State.PROBLEM, f"{wrong} is not writable, and the journal goes there", facts)
    return Check("directory", State.OK, f"{workdir} is writable", facts)


def disk(workdir: Path) -> Check:
    free = shutil.disk_usage(workdir).free
    state = State.PROBLEM if free < _FULL else State.WARNING if free < _LOW else State.OK
    return Check("disk", state, f"{free / (1 << 30):,.1f} GiB free", {"free_bytes": free})


def other_run(workdir: Path) -> Check:
    state = StatePaths(workdir)
    holder = holders(state)
    if not holder and not is_directory_locked(state):
        return Check("other run", State.OK, "no run is active here", {"running": False})
    holder = holder or holder_of(state.lock)
    text = f"a run is active here ({holder or 'its process is unknown'}); `ralph tail -f` shows it"
    return Check("other run", State.PROBLEM, text, {"running": True, "holder": holder})


def git(workdir: Path) -> Check:
    program = which("git")
    version = _output(program, "--version").removeprefix("git version ") if program else ""
    place = ask_git.top(workdir)
    top = (ask_git.ask(place, "rev-parse", "--show-toplevel", timeout=10) or "").strip() if version and place else ""
    facts = {"version": version or None, "repository": top or None}
    if not version:
        return Check(
            "git", State.WARNING, "not found: commits are not counted, and ignored files count as changed", facts
        )
    refusal = ask_git.refusal(workdir) if not top else None
    if refusal is not None:
        return Check("git", State.WARNING, refusal, facts)
    if not top:
        text = f"{version}; this is not a repository, so git cannot undo what an agent does"
        return Check("git", State.WARNING, text, facts)
    return Check("git", State.OK, f"{version}, repository {top}", facts)


def bash() -> Check:
    program = which("bash")
    if program is None:
        return Check("bash", State.WARNING, "not found: --agent-cmd and --verify use sh", {"path": None})
    return Check("bash", State.OK, program, {"path": program})


def processes() -> Check:
    """How what an agent starts is found and ended."""
    group = cgroup.create()
    usable = False
    if group is not None:
        usable = short.run(["/bin/sh", "-c", 'echo $$ >"$1"', "sh", f"{group}/cgroup.procs"], timeout=5).status == 0
        cgroup.remove(group)
    facts = {"cgroup": group is not None and usable}
    if usable:
        text = "an agent runs in a cgroup of its own, which the kernel can end at once"
        return Check("processes", State.OK, text, facts)
    text = "no cgroup can be created here (version 2): what an agent leaves behind is found by its parents"
    return Check("processes", State.OK, text, facts)


def terminal(ui: Ui) -> Check:
    streams = {name: getattr(sys, name).isatty() for name in ("stdin", "stdout", "stderr")}
    term = os.environ.get("TERM") or None
    screen = choose(ui)
    colours = screen is Ui.RICH and not os.environ.get("NO_COLOR")
    size = _size()
    facts: dict[str, Any] = {"tty": streams, "term": term, "colours": colours, "size": size, "screen": screen.value}
    ttys = [name for name, is_tty in streams.items() if is_tty]
    parts = [
        f"{', '.join(ttys)} on a terminal" if ttys else "none",
        f"TERM={term}" if term else "TERM is not set",
        f"{size[0]}×{size[1]}" if size else "",
        "colours" if colours else "no colours",
        f"screen: {screen.value}",
    ]
    return Check("terminal", State.OK, ", ".join(part for part in parts if part), facts)


def own_agents() -> Check:
    own = registry.own()
    files = {name: str(path) for name, path in own.paths.items()}
    broken = [file.complaint() for file in own.broken]
    facts = {"folder": str(registry.own_folder()), "files": files, "broken": broken}
    if broken:
        return Check("own agents", State.WARNING, "\n".join(["ignored:", *broken]), facts)
    text = ", ".join(f"{name} ({path})" for name, path in files.items()) or f"none in {registry.own_folder()}"
    return Check("own agents", State.OK, text, facts)


def approved(settled: Settled) -> Check:
    """What a run would run of the repository's own code, and whether that is approved."""
    wanted = items_to_approve(settled.resolved, settled.workdir)
    missing = settled.trust.missing(wanted)
    files = registry.project_files(settled.workdir)
    facts = {
        "project_agents": [str(path) for path in files],
        "needed": [item.what for item in wanted],
        "missing": [item.what for item in missing],
    }
    if missing:
        return Check("trust", State.PROBLEM, refusal(missing), facts)
    if wanted:
        return Check("trust", State.OK, f"approved: {', '.join(facts['needed'])}", facts)
    if files:
        return Check("trust", State.WARNING, registry.not_approved(files).strip().replace("\n  ", "\n"), facts)
    return Check("trust", State.OK, "a run would execute no code of this project", facts)


def price_table(prices: Prices) -> Check:
    package = package_installed()
    facts = {"file": str(prices.path) if prices.path else None, "models": len(prices.rows), "genai_prices": package}
    known = [f"{prices.path} ({count(len(prices.rows), 'pattern')})"] if prices.path else []
    known += ["the package genai-prices"] if package else []
    text = ", then ".join(known) or "no table: costs are known only if the agent reports them"
    return Check("prices", State.OK, text, facts)


def _size() -> tuple[int, int] | None:
    for stream in (sys.stdout, sys.stderr, sys.stdin):
        try:
            size = os.get_terminal_size(stream.fileno())
            return size.columns, size.lines
        except (OSError, ValueError):
            continue
    return None


def _output(*command: str) -> str:
    try:
        done = short.run(list(command), timeout=10)
    except OSError:
        return ""
    return done.stdout.decode("utf-8", "replace").strip() if done.status == 0 else ""
