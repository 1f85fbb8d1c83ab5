"""The settings of a fallback: an agent that runs while the first one is rate-limited."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ralph.config.settings import HOSTED, OnLimit

if TYPE_CHECKING:
    from ralph.config.layers import Resolved

#: Settings for the first agent only, with the values that a fallback gets instead.
_FIRST_AGENT_ONLY = {"model": None, "command": None, "transcript": "auto", **dict.fromkeys(HOSTED)}
_WARNED_ABOUT = ("model", "transcript")


def fallback_settings(resolved: Resolved, name: str) -> Resolved:
    """The settings of the same run with the fallback `name` as its agent."""
    settings, origins = resolved.settings, dict(resolved.origins)
    changes: dict[str, object] = {"agent": name, "agents": (), "on_limit": OnLimit.WAIT}
    warnings = []
    if name != "custom":
        changes |= {"agent_cmd": None, **_FIRST_AGENT_ONLY}
        warnings = [
            f"{setting} ({origins[setting]}) is for {settings.agent}: {name} uses its own"
            for setting in _WARNED_ABOUT
            if getattr(settings, setting) != _FIRST_AGENT_ONLY[setting]
        ]
    for setting in ("continue_session", "allowed_tools", "model"):
        # Hide that it is a flag: if the fallback cannot follow it, that is a warning and not an error.
        origins[setting] = origins[setting].lstrip("-")
    return msgspec.structs.replace(
        resolved,
        settings=msgspec.structs.replace(settings, **changes),
        origins=origins,
        warnings=warnings,
        hints=resolved.hints | {"allowed_tools"},
    )
