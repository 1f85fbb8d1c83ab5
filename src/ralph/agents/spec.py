"""The schema of an agent's TOML file."""

from __future__ import annotations

import re
from enum import StrEnum

import msgspec

#: The kernel's limit for one argument, its final NUL included (128 KiB).
MAX_ARGUMENT = 131_071


class Delivery(StrEnum):
    """How the prompt gets to the agent."""

    STDIN = "stdin"
    ARGUMENT = "argument"
    FILE = "file"  # `{prompt_file}` in args, or appended


class Invocation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How to start the agent, for the versions named (all, if none are)."""

    args: tuple[str, ...] = ()
    prompt: Delivery = Delivery.STDIN
    #: in front of the prompt (or its file), as `-p`
    prompt_flag: str | None = None
    transcript: str = "plain"
    versions: str = ""
    env: dict[str, str] = {}
    pty: bool = False


class VersionProbe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    args: tuple[str, ...] = ("--version",)
    pattern: str = r"(\d+\.\d+(?:\.\d+)?)"
    minimum: str | None = None


class AgentSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    title: str
    #: programs to look for, in order
    commands: tuple[str, ...]
    invocation: tuple[Invocation, ...]
    aliases: tuple[str, ...] = ()
    #: how to get it, in one line
    install: str = ""
    link: str = ""
    #: place in the order of auto-detection; agents without one are used only when they are named
    detect: int | None = None
    version: VersionProbe = VersionProbe()
    model_args: tuple[str, ...] = ()
    #: variables that carry its login
    login_env: tuple[str, ...] = ()
    #: variables that must not reach it
    unset_env: tuple[str, ...] = ()
    idle_timeout: float | None = None
    wall_timeout: float | None = None
    first_output_timeout: float | None = None
    #: how long it may live on after its own last word
    linger: float | None = 30.0

    def invocation_for(self, version: str | None) -> Invocation:
        """The first whose range holds; with an unknown version, the first of all (the newest is listed first)."""
        if version is not None:
            for candidate in self.invocation:
                if in_range(version, candidate.versions):
                    return candidate
        return self.invocation[0]


def parse_version(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", text)[:4])


def in_range(version: str, expression: str) -> bool:
    """`>=1.2,<2`: all parts must hold; an empty expression always does."""
    have = parse_version(version)
    for part in filter(None, (p.strip() for p in expression.split(","))):
        operator = re.match(r"[<>=]+", part)
        sign = operator.group() if operator else "=="
        want = parse_version(part)
        width = max(len(have), len(want))
        left = have + (0,) * (width - len(have))
        right = want + (0,) * (width - len(want))
        holds = {">=": left >= right, ">": left > right, "<=": left <= right, "<": left < right}.get(
            sign, left == right
        )
        if not holds:
            return False
    return True
