"""The drivers of a project, for `ralph agents`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ralph.agents import registry
from ralph.agents.survey import Row
from ralph.dialects.driver.launcher import DriverLauncher, describe
from ralph.dialects.driver.locate import all_drivers
from ralph.errors import UsageError
from ralph.system import files
from ralph.system.programs import which

if TYPE_CHECKING:
    from pathlib import Path

    from ralph.launching.launch import Launch


def row(launch: Launch) -> Row | None:
    """The driver that a run would use, beside the agents that ralph knows."""
    launcher = launch.launcher
    if not isinstance(launcher, DriverLauncher):
        return None
    tells = _tells(launch.transcript)
    return Row(
        name=launcher.described.name,
        title=launcher.described.title,
        path=which(launcher.described.binary),
        version=launcher.version(),
        works=True,
        prompt="driver",
        transcript=launch.transcript,
        thinking="thinking" in tells,
        tools="tools" in tells,
        usage="usage" in tells,
        cost="cost" in tells,
        session="session" in tells,
        resume=launcher.described.sessions,
        tool_list=launcher.described.allow_list,
        model=False,
        install="",
        link="",
    )


def lines(workdir: Path, launch: Launch | None) -> list[str]:
    """What there is to say about the drivers here. None of them is run for it but the one of the plan."""
    told = []
    used = None
    if launch is not None and isinstance(launch.launcher, DriverLauncher):
        used = launch.launcher.path
        told.append(f"{launch.launcher.described.name} is this project's driver: {_seen(used, workdir)}")
        told.append(f"  {describe(launch.launcher.described)}")
    others = [path for path in all_drivers(workdir) if path != used and "driver_build_command" in _text(path)]
    if others:
        told.append(f"Other drivers here (--driver NAME): {', '.join(path.stem for path in others)}")
    return told


def _tells(transcript: str) -> tuple[str, ...]:
    try:
        return registry.get(transcript).tells
    except UsageError:
        return ()


def _seen(path: Path, workdir: Path) -> str:
    return str(path.relative_to(workdir)) if path.is_relative_to(workdir) else str(path)


def _text(path: Path) -> str:
    try:
        return files.read_text(path)
    except OSError:
        return ""
