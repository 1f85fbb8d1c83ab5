"""The environment of what ralph starts: the user's, less what is kept back."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ralph.config.convert import split
from ralph.config.settings import BY_NAME
from ralph.masking.credentials import matches
from ralph.trust import items as trust

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ralph.agents.spec import AgentSpec
    from ralph.config.layers import Resolved


def keep_back(patterns: Iterable[str]) -> dict[str, str]:
    """Takes variables out of our own environment, so that nothing that is started from now on has them: an agent, a
    check, a probe for a version, a script of another convention. Gives back what was taken."""
    wanted = tuple(patterns)
    names = [name for name in os.environ if name != trust.VARIABLE and matches(name, wanted)]
    return {name: os.environ.pop(name) for name in names}


def early(flags: dict[str, Any]) -> dict[str, str]:
    """What the command line or a variable denies, before any file is read: to read some, code is run."""
    option = BY_NAME["env_deny"]
    said = flags.get("env_deny") or os.environ.get("RALPH_ENV_DENY", "")
    # Our own are still to be read.
    names = [name for name in os.environ if not name.startswith("RALPH_") and matches(name, split(option, said))]
    return {name: os.environ.pop(name) for name in names}


def login_kept_back(resolved: Resolved, spec: AgentSpec) -> list[str]:
    """What to say if an agent is denied what it may log in with."""
    names = sorted(name for name in spec.login_env if resolved.kept_back.get(name))
    if not names:
        return []
    origin = resolved.origins["env_deny"]
    return [f"{origin} keeps {', '.join(names)} from {spec.title}, which may need it for its login"]
