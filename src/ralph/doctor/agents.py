"""Each agent that is here, and exactly how a run would start it."""

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

#: Stand for the prompt in an argv that is shown.
PROMPT = "PROMPT"
PROMPT_FILE = "PROMPT_FILE"


class AgentCheck(msgspec.Struct, frozen=True):
    """One agent, as a run would use it."""

    name: str
    title: str
    path: str
    version: str | None
    version_status: VersionStatus
    #: whether it answered when asked for its version
    answers: bool
    #: whether `ralph run` would use it here and now
    chosen: bool = False
    #: as a run would start it; PROMPT and PROMPT_FILE stand for the prompt
    argv: list[str] = []
    #: how the prompt goes in
    prompt: str | None = None
    transcript: str | None = None
    #: variables that are set for it, and those that are kept from it
    env: dict[str, str] = {}
    unset_env: tuple[str, ...] = ()
    #: those that the user denies it
    withheld: tuple[str, ...] = ()
    tested: tuple[str, ...] = ()
    minimum: str | None = None
    login: Login | None = None
    notes: tuple[str, ...] = ()
    warnings: list[str] = []
    #: why it cannot be used as things are
    problem: str | None = None
    #: the user's own file that describes it
    file: str | None = None
    replaces: bool = False


def look(resolved: Resolved, workdir: Path, chosen: Launch | None) -> tuple[list[AgentCheck], list[str]]:
    """Those found, in the order of detection, and the names of the others. Probes run side by side."""
    specs = sorted(registry.all_specs(), key=lambda s: (s.detect is None, s.detect or 0, s.name))
    specs = [spec for spec in specs if not _for_show(spec) and (chosen is None or spec.name != chosen.agent)]
    with ThreadPoolExecutor(max_workers=4) as pool:
        results = list(pool.map(lambda spec: _look(spec, resolved, workdir), specs))
    found = [result for result in results if result is not None]
    if chosen is not None:
        found.insert(0, _planned(chosen, resolved, answers=_answers(chosen), chosen=True))
    return found, [spec.name for spec, result in zip(specs, results, strict=True) if result is None]


def _look(spec: AgentSpec, resolved: Resolved, workdir: Path) -> AgentCheck | None:
    program = detect.locate(spec)
    if program is None:
        return None
    answers, version = detect.probe(spec, program)
    try:
        launch = launch_for(resolved, workdir, detect.Installed(spec, program, version))
    except UsageError as error:
        if PYTHON in spec.commands:
            return None  # always there; without what it needs it is as good as not
        return _known(spec, program, version, answers=answers, problem=str(error))
    return _planned(launch, resolved, answers=answers, chosen=False)


def _for_show(spec: AgentSpec) -> bool:
    """The demo agent: part of ralph, and in need of nothing."""
    return PYTHON in spec.commands and not spec.needs_env


def _answers(launch: Launch) -> bool:
    return launch.spec is None or detect.probe(launch.spec, launch.base[0])[0]


def _planned(launch: Launch, resolved: Resolved, *, answers: bool, chosen: bool) -> AgentCheck:
    if launch.spec is not None:
        known = _known(launch.spec, launch.base[0], launch.version, answers=answers)
    else:
        known = _hosted(launch, answers=answers)
    told_elsewhere = {*resolved.warnings, *registry.warnings()}
    return msgspec.structs.replace(
        known,
        chosen=chosen,
        argv=launch.command_line(PROMPT, Path(PROMPT_FILE)).argv,
        prompt=launch.delivery,
        transcript=launch.transcript,
        env=launch.invocation.env,
        withheld=tuple(sorted(resolved.withheld)),
        warnings=[w for w in launch.resolved.warnings if w not in told_elsewhere],
    )


def _hosted(launch: Launch, *, answers: bool) -> AgentCheck:
    """An agent of the user's own, or of another convention."""
    told = launch.launcher.examine() if launch.launcher else Examined()
    version = told.version or launch.version
    return AgentCheck(
        launch.agent,
        launch.title,
        launch.base[0],
        version,
        version_status(version, (), told.minimum),
        answers=answers,
        minimum=told.minimum,
        notes=told.notes,
        problem=told.problem,
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
    return login(spec, os.environ, os.path.expanduser("~"))  # noqa: PTH111 - a user without a home is no reason to fail
