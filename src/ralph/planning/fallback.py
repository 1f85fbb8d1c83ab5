"""The plans of the agents that take over while the first one is limited."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ralph.config.settings import HOSTED, OnLimit
from ralph.planning.prepare import prepare_launch, with_warnings

if TYPE_CHECKING:
    from pathlib import Path

    from ralph.config.layers import Resolved
    from ralph.planning.launch import Launch

#: Written for the first agent: another one would not know these names.
_OF_THE_FIRST = {"model": None, "command": None, "transcript": "auto", **dict.fromkeys(HOSTED)}
_TOLD = ("model", "transcript")


def with_fallbacks(launch: Launch, resolved: Resolved, workdir: Path) -> Launch:
    """The plan with those of the other agents; one that is not there is an error before the start, not at night."""
    others = tuple(_stand_in(resolved, name, workdir) for name in resolved.settings.agents[1:])
    said = set(launch.resolved.warnings)
    more = [w for other in others for w in other.resolved.warnings if w not in said]
    return msgspec.structs.replace(launch, resolved=with_warnings(launch.resolved, more), fallbacks=others)


def _stand_in(resolved: Resolved, name: str, workdir: Path) -> Launch:
    settings, origins = resolved.settings, dict(resolved.origins)
    changes: dict[str, object] = {"agent": name, "agents": (), "on_limit": OnLimit.WAIT}
    warnings = []
    if name != "custom":
        changes |= {"agent_cmd": None, **_OF_THE_FIRST}
        warnings = [
            f"{setting} ({origins[setting]}) is for {settings.agent}: {name} runs with its own"
            for setting in _TOLD
            if getattr(settings, setting) != _OF_THE_FIRST[setting]
        ]
    for setting in ("continue_session", "allowed_tools", "model"):
        # Asked for by flag it was meant for the first: where this one cannot do it, a warning is enough.
        origins[setting] = origins[setting].lstrip("-")
    changed = msgspec.structs.replace(
        resolved,
        settings=msgspec.structs.replace(settings, **changes),
        origins=origins,
        warnings=warnings,
        hints=resolved.hints | {"allowed_tools"},
    )
    return prepare_launch(changed, workdir)
