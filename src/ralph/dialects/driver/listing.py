"""Lists the drivers of a project for `ralph agents`."""

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
    """The table row of the driver that a run would use. None if it would use no driver."""
    launcher = launch.launcher
    if not isinstance(launcher, DriverLauncher):
        return None
    reported = _reported(launch.transcript)
    return Row(
        name=launcher.description.name,
        title=launcher.description.title,
        path=which(launcher.description.binary),
        version=launcher.version(),
        works=True,
        prompt="driver",
        transcript=launch.transcript,
        thinking="thinking" in reported,
        tools="tools" in reported,
        usage="usage" in reported,
        cost="cost" in reported,
        session="session" in reported,
        resume=launcher.description.sessions,
        tool_list=launcher.description.allow_list,
        model=False,
        install="",
        link="",
    )


def lines(workdir: Path, launch: Launch | None) -> list[str]:
    """Lines about the project's drivers, for people. The drivers that `launch` does not use are not executed."""
    found = []
    used = None
    if launch is not None and isinstance(launch.launcher, DriverLauncher):
        used = launch.launcher.path
        found.append(f"{launch.launcher.description.name} is this project's driver: {_shown(used, workdir)}")
        found.append(f"  {describe(launch.launcher.description)}")
    others = [path for path in all_drivers(workdir) if path != used and "driver_build_command" in _text(path)]
    if others:
        found.append(f"Other drivers of this project (--driver NAME): {', '.join(path.stem for path in others)}")
    return found


def _reported(transcript: str) -> tuple[str, ...]:
    """What an agent reports in this transcript."""
    try:
        return registry.get(transcript).tells
    except UsageError:
        return ()


def _shown(path: Path, workdir: Path) -> str:
    return str(path.relative_to(workdir)) if path.is_relative_to(workdir) else str(path)


def _text(path: Path) -> str:
    try:
        return files.read_text(path)
    except OSError:
        return ""
