"""Scripts for the model, as data: turns with tool calls, and faults instead of an answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


@dataclass(frozen=True)
class Shell:
    """Run a command with the agent's shell tool."""

    command: str


@dataclass(frozen=True)
class Write:
    """Write a file with the agent's tool for files, or with its shell if it has none."""

    path: str
    content: str


Act: TypeAlias = Shell | Write


@dataclass(frozen=True)
class Turn:
    """One answer of the model. The last turn of a script has no acts, which ends the agent's work."""

    text: str = ""
    thinking: str = ""
    acts: tuple[Act, ...] = ()


class Failure(StrEnum):
    """Why a provider refuses. Each API reports it differently."""

    AUTH = "auth"
    RATE_LIMIT = "rate_limit"
    SERVER = "server"
    QUOTA = "quota"
    CONTEXT = "context"


class When(StrEnum):
    """Which requests a fault affects."""

    ALWAYS = "always"
    FIRST = "first"


@dataclass(frozen=True)
class Refuse:
    """An HTTP error instead of an answer."""

    failure: Failure
    when: When = When.ALWAYS


@dataclass(frozen=True)
class Cut:
    """The connection closes in the middle of the answer."""


@dataclass(frozen=True)
class Hang:
    """The request is accepted and never answered."""


Fault: TypeAlias = Refuse | Cut | Hang


@dataclass(frozen=True)
class Scenario:
    """A script, with a description."""

    about: str
    turns: tuple[Turn, ...]
    fault: Fault | None = None
    #: seconds between two pieces of a streamed answer
    pace: float = 0.0
    #: also follow the script for requests that offer no tools
    without_tools: bool = False

    def step(self, results: int) -> int:
        """The turn to play after this many tool results since the user's last message."""
        for number, turn in enumerate(self.turns):
            results -= len(turn.acts)
            if not turn.acts or results < 0:
                return number
        return len(self.turns) - 1


@dataclass(frozen=True)
class Usage:
    """Tokens of one answer. `input` includes the cached ones, `output` the reasoning ones."""

    input: int
    output: int
    cached: int
    reasoning: int


_USAGE = (Usage(1200, 105, 0, 20), Usage(1400, 60, 1024, 0), Usage(1550, 57, 1280, 12))


def usage_of(step: int) -> Usage:
    """The tokens that a turn reports: always the same, so that a test can add them up."""
    return _USAGE[min(step, len(_USAGE) - 1)]
