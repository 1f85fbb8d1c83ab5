"""How an agent is started: a command line, or a launcher of another convention that makes one."""

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
    #: resume the session with the id that the agent reports
    RESUME = "resume"
    #: start the session with an id that ralph chooses
    NAME = "name"


class CommandLine(msgspec.Struct, frozen=True):
    """One exact command line. `env` is added to the environment of the launch."""

    argv: list[str]
    stdin: bytes | None
    env: dict[str, str] = {}
    #: the command gets a descriptor 3, whose lines go to `Launcher.aside`
    aside: bool = False


class Examined(msgspec.Struct, frozen=True):
    """What `ralph doctor` can report about an agent without a spec."""

    version: str | None = None
    minimum: str | None = None
    notes: tuple[str, ...] = ()
    #: why it cannot be used
    problem: str | None = None


class Launcher:
    """Starts an agent without a spec: a script, driver or provider of another convention."""

    #: in words, for `--dry-run`
    delivery = ""
    #: whether it can resume a session
    resumes = False
    #: files in the working tree that are written for the agent, not by it
    writes: tuple[Path, ...] = ()

    def command_line(self, prompt: str, prompt_file: Path, session: str | None, *, resume: bool) -> CommandLine:
        """The command for a prompt; a UsageError if it cannot be delivered."""
        raise NotImplementedError

    def render(self, prompt: str) -> str:
        """The prompt as the agent gets it, after replacing the convention's variables."""
        return prompt

    def adapter(self, prompt: str) -> TranscriptAdapter | None:
        """The adapter for the next iteration, if it is not the one of the launch."""
        return None

    def reader(self) -> SignalReader | None:
        """Reads how this convention reports that the work is done; None if it uses the default markers."""
        return None

    def aside(self, line: str) -> list[TranscriptEvent]:
        """The events for a line that the command wrote to descriptor 3."""
        from ralph.transcripts.events import Tag, Text

        return [Text(Tag.SYS, line)]

    def finish(self, folder: Path, ended: Ended, seen: Observation) -> list[TranscriptEvent]:
        """Events to add when an iteration has ended, before it is judged. `folder` is its folder in the journal."""
        return []

    def find_session(self, stdout: Path) -> str | None:
        """The session id in a recording, if this convention finds it more reliably than the adapter."""
        return None

    def fallback_session(self, stdout: Path) -> str | None:
        """A session id to use if neither `find_session` nor the adapter finds one."""
        return None

    def examine(self) -> Examined:
        """What is known about the agent without sending it a prompt."""
        return Examined()

    def help_for(self, outcome: str) -> str | None:
        """What the convention tells its users to do about an outcome."""
        return None
