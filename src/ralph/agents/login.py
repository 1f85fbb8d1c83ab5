"""Checks whether an agent has a login, without running the agent."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ralph.agents.spec import AgentSpec


class LoginState(StrEnum):
    KNOWN = "known"
    MISSING = "missing"
    UNKNOWN = "unknown"


class Login(msgspec.Struct, frozen=True):
    """Contains names only, never values."""

    state: LoginState
    why: str
    #: the variables and files that hold it
    found: tuple[str, ...] = ()


def login(spec: AgentSpec, environ: Mapping[str, str], home: str, platform: str = sys.platform) -> Login:
    variables = [name for name in spec.login_env if environ.get(name)]
    files = [f"~/{name}" for name in spec.login_files if os.path.exists(os.path.join(home, name))]  # noqa: PTH110, PTH118
    if variables or files:
        parts = [*(f"{name} is set" for name in variables), *(f"{name} exists" for name in files)]
        return Login(LoginState.KNOWN, ", ".join(parts), (*variables, *files))
    looked = []
    if spec.login_env:
        looked.append(f"{_none_of(spec.login_env)} is set")
    if spec.login_files:
        looked.append(f"{_none_of([f'~/{name}' for name in spec.login_files])} exists")
    if not looked:
        return Login(LoginState.UNKNOWN, "ralph does not know where it keeps its login, or it needs none")
    # Only the agent itself can look into a keychain, or into a file in an unknown place.
    if not spec.login_files or platform == "darwin":
        return Login(LoginState.UNKNOWN, f"{', and '.join(looked)}, but the login may be elsewhere")
    return Login(LoginState.MISSING, ", and ".join(looked))


def _none_of(names: tuple[str, ...] | list[str]) -> str:
    return f"no {names[0]}" if len(names) == 1 else f"none of {', '.join(names)}"
