"""`agents: [claude, codex]`: the first one runs, the others are fallbacks while it is rate-limited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ralph.config.settings import OnLimit

if TYPE_CHECKING:
    from collections.abc import Iterable


def set_agent(values: dict[str, Any], origins: dict[str, str]) -> str | None:
    """In one layer: sets `agent` to the first of `agents`. Returns a message if the layer names another agent, too."""
    if "agents" not in values:
        return None
    names: Iterable[str] = dict.fromkeys(name.strip() for name in values["agents"] if name.strip())
    values["agents"] = tuple(names)
    if not values["agents"]:
        return None
    first, other = values["agents"][0], values.get("agent")
    values["agent"] = first
    if other not in (None, first):
        return f"{origins['agent']} names {other}, but {origins['agents']} begins with {first}: {first} runs first"
    origins["agent"] = origins["agents"]
    return None


def check_fallbacks(values: dict[str, Any], origins: dict[str, str]) -> str | None:
    """In the merged settings: drops the list if a stronger layer chose another agent, and sets `on_limit` to match.

    A list of several agents implies `on_limit: fallback`. Returns a message if fallback was asked for without a list.
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
    return f"{where}: fallback needs a list of agents, such as --agents claude,codex"
