"""The settings for an agent that takes over while another one is rate-limited."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ralph.config.settings import HOSTED, OnLimit

if TYPE_CHECKING:
    from ralph.config.layers import Resolved

#: Meant for the first agent: another one would not know these names.
_OF_THE_FIRST = {"model": None, "command": None, "transcript": "auto", **dict.fromkeys(HOSTED)}
_WARNED_ABOUT = ("model", "transcript")


def stand_in(resolved: Resolved, name: str) -> Resolved:
    """The same run with the fallback `name` as its agent."""
    settings, origins = resolved.settings, dict(resolved.origins)
    changes: dict[str, object] = {"agent": name, "agents": (), "on_limit": OnLimit.WAIT}
    warnings = []
    if name != "custom":
        changes |= {"agent_cmd": None, **_OF_THE_FIRST}
        warnings = [
            f"{setting} ({origins[setting]}) is for {settings.agent}: {name} runs with its own"
            for setting in _WARNED_ABOUT
            if getattr(settings, setting) != _OF_THE_FIRST[setting]
        ]
    for setting in ("continue_session", "allowed_tools", "model"):
        # A flag was meant for the first agent: where this one cannot follow it, a warning is enough.
        origins[setting] = origins[setting].lstrip("-")
    return msgspec.structs.replace(
        resolved,
        settings=msgspec.structs.replace(settings, **changes),
        origins=origins,
        warnings=warnings,
        hints=resolved.hints | {"allowed_tools"},
    )
