"""How an agent is started: a command line, or another convention's way to one."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pathlib import Path

    from ralph.judging.observe import Observation
    from ralph.judging.signals import SignalReader
    from ralph.runners.process import Ended
    from ralph.transcripts.base import TranscriptAdapter
    from ralph.transcripts.events import TranscriptEvent


class SessionMode(StrEnum):
    FRESH = "fresh"
    #: with the id that the agent tells
    RESUME = "resume"
    #: with an id that we choose at the start
    NAME = "name"


class CommandLine(msgspec.Struct, frozen=True):
    """One command line, exactly. `env` is added to the plan's."""

    argv: list[str]
    stdin: bytes | None
    env: dict[str, str] = {}
    #: it wants a descriptor 3, whose lines go to `Launcher.aside`
    aside: bool = False


class Examined(msgspec.Struct, frozen=True):
    """What `ralph doctor` is told about an agent that is not a spec."""

    version: str | None = None
    minimum: str | None = None
    notes: tuple[str, ...] = ()
    #: why it cannot be used as things are
    problem: str | None = None


class Launcher:
    """Starts an agent that is not a spec: a script, a driver, a provider of another convention."""

    #: in words, for `--dry-run`
    delivery = ""
    #: whether it can go on with a session
    resumes = False

    def command_line(self, prompt: str, prompt_file: Path, session: str | None, *, resume: bool) -> CommandLine:
        """The command for a prompt; a UsageError if it cannot be delivered."""
        raise NotImplementedError

    def render(self, prompt: str) -> str:
        """The prompt as the agent gets it, where the convention has variables in it."""
        return prompt

    def adapter(self, prompt: str) -> TranscriptAdapter | None:
        """Another adapter than that of the plan, for the next iteration."""
        return None

    def reader(self) -> SignalReader | None:
        """How this convention says that it is done; None: by the usual markers."""
        return None

    def aside(self, line: str) -> list[TranscriptEvent]:
        """A line that came on descriptor 3."""
        from ralph.transcripts.events import Tag, Text

        return [Text(Tag.SYS, line)]

    def finish(self, folder: Path, ended: Ended, seen: Observation) -> list[TranscriptEvent]:
        """What is to be added once an iteration has ended, before it is judged; `folder` is its in the journal."""
        return []

    def find_session(self, stdout: Path) -> str | None:
        """The session id in a recording, where this convention knows better than the adapter."""
        return None

    def fallback_session(self, stdout: Path) -> str | None:
        """The last resort for a session id."""
        return None

    def examine(self) -> Examined:
        """What can be said about the agent without running it on a prompt."""
        return Examined()

    def help_for(self, outcome: str) -> str | None:
        """What a person should do about an outcome, in the convention's own words."""
        return None
