"""How long an agent may run, be silent, and take to exit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ralph.runners.process import Deadlines

if TYPE_CHECKING:
    from ralph.launching.launch import Launch


def deadlines_of(launch: Launch) -> Deadlines:
    return Deadlines(
        idle=launch.idle_timeout[0] or None,
        wall=launch.wall_timeout[0] or None,
        first_output=launch.spec.first_output_timeout if launch.spec else None,
        linger=launch.spec.linger if launch.spec else None,
        grace=launch.settings.grace,
    )
