"""Checks each installed agent, and shows exactly how a run would start it."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ralph.agents import detect, registry
from ralph.agents.login import Login, login
from ralph.agents.spec import PYTHON
from ralph.agents.versions import VersionStatus, version_status
from ralph.errors import UsageError
from ralph.launching.known import launch_for
from ralph.launching.launcher import Examined

if TYPE_CHECKING:
    from ralph.agents.spec import AgentSpec
    from ralph.config.layers import Resolved
    from ralph.launching.launch import Launch

#: Placeholders for the prompt in the argv that is shown.
PROMPT = "PROMPT"
PROMPT_FILE = "PROMPT_FILE"


class AgentCheck(msgspec.Struct, frozen=True):
    """One agent, as a run would use it."""

    name: str
    title: str
    path: str
    version: str | None
    version_status: VersionStatus
    #: whether it printed its version
    answers: bool
    #: whether `ralph run` would use it here
    chosen: bool = False
    #: as a run would start it, with PROMPT and PROMPT_FILE as placeholders
    argv: list[str] = []
    #: how it gets the prompt
    prompt: str | None = None
    transcript: str | None = None
    #: variables that are set for it, and variables that are removed
    env: dict[str, str] = {}
    unset_env: tuple[str, ...] = ()
    #: variables that the user's settings remove
    withheld: tuple[str, ...] = ()
    tested: tuple[str, ...] = ()
    minimum: str | None = None
    login: Login | None = None
    notes: tuple[str, ...] = ()
    warnings: list[str] = []
    #: why it cannot be used
    problem: str | None = None
    #: the user's own file that defines it
    file: str | None = None
    replaces: bool = False


def check_agents(resolved: Resolved, workdir: Path, chosen: Launch | None) -> tuple[list[AgentCheck], list[str]]:
    """The installed agents, in the order of detection, and the names of the others. Probes run in parallel."""
    specs = sorted(registry.all_specs(), key=lambda s: (s.detect is None, s.detect or 0, s.name))
    specs = [spec for spec in specs if not _is_demo(spec) and (chosen is None or spec.name != chosen.agent)]
    with ThreadPoolExecutor(max_workers=4) as pool:
        results = list(pool.map(lambda spec: _check(spec, resolved, workdir), specs))
    found = [result for result in results if result is not None]
    if chosen is not None:
        found.insert(0, _planned(chosen, resolved, answers=_answers(chosen), chosen=True))
    return found, [spec.name for spec, result in zip(specs, results, strict=True) if result is None]


def _check(spec: AgentSpec, resolved: Resolved, workdir: Path) -> AgentCheck | None:
    program = detect.locate(spec)
    if program is None:
        return None
    answers, version = detect.probe(spec, program)
    try:
        launch = launch_for(resolved, workdir, detect.Installed(spec, program, version))
    except UsageError as error:
        if PYTHON in spec.commands:
            return None  # Python is always installed, but something else that it needs is missing
        return _known(spec, program, version, answers=answers, problem=str(error))
    return _planned(launch, resolved, answers=answers, chosen=False)


def _is_demo(spec: AgentSpec) -> bool:
    """The demo agent is part of ralph and needs nothing."""
    return PYTHON in spec.commands and not spec.needs_env


def _answers(launch: Launch) -> bool:
    return launch.spec is None or detect.probe(launch.spec, launch.base[0])[0]


def _planned(launch: Launch, resolved: Resolved, *, answers: bool, chosen: bool) -> AgentCheck:
    if launch.spec is not None:
        known = _known(launch.spec, launch.base[0], launch.version, answers=answers)
    else:
        known = _hosted(launch, answers=answers)
    shown_elsewhere = {*resolved.warnings, *registry.warnings()}
    return msgspec.structs.replace(
        known,
        chosen=chosen,
        argv=launch.command_line(PROMPT, Path(PROMPT_FILE)).argv,
        prompt=launch.delivery,
        transcript=launch.transcript,
        env=launch.invocation.env,
        withheld=tuple(sorted(resolved.withheld)),
        warnings=[w for w in launch.resolved.warnings if w not in shown_elsewhere],
    )


def _hosted(launch: Launch, *, answers: bool) -> AgentCheck:
    """An agent that is the user's own command, or comes from another convention."""
    examined = launch.launcher.examine() if launch.launcher else Examined()
    version = examined.version or launch.version
    return AgentCheck(
        launch.agent,
        launch.title,
        launch.base[0],
        version,
        version_status(version, (), examined.minimum),
        answers=answers,
        minimum=examined.minimum,
        notes=examined.notes,
        problem=examined.problem,
    )


def _known(
    spec: AgentSpec, program: str, version: str | None, *, answers: bool, problem: str | None = None
) -> AgentCheck:
    own = registry.own().paths.get(spec.name)
    return AgentCheck(
        name=spec.name,
        title=spec.title,
        path=program,
        version=version,
        version_status=version_status(version, spec.version.tested, spec.version.minimum),
        answers=answers,
        tested=spec.version.tested,
        minimum=spec.version.minimum,
        unset_env=spec.unset_env,
        login=_login(spec),
        notes=spec.notes,
        problem=problem,
        file=str(own) if own else None,
        replaces=own is not None and spec.name in registry.builtin_names(),
    )


def _login(spec: AgentSpec) -> Login:
    return login(spec, os.environ, os.path.expanduser("~"))  # noqa: PTH111 - must not fail for a user without a home
