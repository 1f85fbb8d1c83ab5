"""`agents: [claude, codex]`: the first is the agent, the others take over while it is limited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ralph.config.settings import OnLimit

if TYPE_CHECKING:
    from collections.abc import Iterable


def spread(values: dict[str, Any], origins: dict[str, str]) -> str | None:
    """In one layer a list of agents is an answer to `agent` as well. What is wrong with that, if anything is."""
    names: Iterable[str] = dict.fromkeys(name.strip() for name in values.get("agents", ()) if name.strip())
    if "agents" not in values:
        return None
    values["agents"] = tuple(names)
    if not values["agents"]:
        return None
    first = values["agents"][0]
    said = values.get("agent")
    values["agent"] = first
    if said not in (None, first):
        return f"{origins['agent']} names {said}, {origins['agents']} begins with {first}: the first is the agent"
    origins["agent"] = origins["agents"]
    return None


def settle(values: dict[str, Any], origins: dict[str, str]) -> str | None:
    """After all layers were put together: a list that another choice of agent has overruled is no list any more.

    Naming agents that take over is asking for it. Returns why nobody can take over, where that was asked for.
    """
    if values["agents"] and values["agents"][0] != values["agent"]:
        values["agents"], origins["agents"] = (), "default"
    several = len(values["agents"]) > 1
    if several and origins["on_limit"] == "default":
        values["on_limit"], origins["on_limit"] = OnLimit.FALLBACK, origins["agents"]
    if several or values["on_limit"] is not OnLimit.FALLBACK:
        return None
    where = origins["on_limit"]
    values["on_limit"], origins["on_limit"] = OnLimit.WAIT, "default"
    return f"{where}: fallback needs a list of agents, like --agents claude,codex"
