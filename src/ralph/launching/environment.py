"""The environment of everything that ralph starts: the user's, without the withheld variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ralph.masking.credentials import matches

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ralph.agents.spec import AgentSpec
    from ralph.config.layers import Resolved


def without(environ: dict[str, str], patterns: Iterable[str]) -> dict[str, str]:
    """The variables that match none of the patterns. RALPH_ variables stay, because they have yet to be read."""
    wanted = tuple(patterns)
    return {name: value for name, value in environ.items() if name.startswith("RALPH_") or not matches(name, wanted)}


def withholding(resolved: Resolved, original: dict[str, str], *always: str) -> Resolved:
    """The settings with an environment without the variables in `env_deny` and `always`.

    From now on nothing that ralph starts sees these: no agent, check, version probe or script of another convention.
    """
    denied = resolved.settings.env_deny
    kept = {name: value for name, value in original.items() if name not in always and not matches(name, denied)}
    withheld = {name: value for name, value in original.items() if name not in kept and name not in always}
    return msgspec.structs.replace(resolved, environ=kept, withheld=withheld)


def login_withheld(resolved: Resolved, spec: AgentSpec) -> list[str]:
    """A warning if a variable that the agent may log in with is withheld."""
    names = sorted(name for name in spec.login_env if resolved.withheld.get(name))
    if not names:
        return []
    origin = resolved.origins["env_deny"]
    them = "it" if len(names) == 1 else "them"
    return [f"{origin} withholds {', '.join(names)} from {spec.title}, which may need {them} to log in"]
