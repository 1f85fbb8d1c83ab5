"""What a transcript adapter is."""

from __future__ import annotations

import msgspec

from ralph.transcripts.events import Tag, Text, TranscriptEvent


class Capabilities(msgspec.Struct, frozen=True):
    """What an adapter can report. The screen offers only what these allow."""

    supports_roles: bool = False
    supports_tool_events: bool = False
    supports_usage_events: bool = False
    supports_prompt_hiding: bool = False


class TranscriptAdapter:
    """Lines in, events out: pure, stateful, no I/O.

    A line comes without its newline. An adapter never raises and never stays silent about a line it does not
    understand: that line becomes text. Subclasses set `name` and `capabilities` and implement `feed`.
    """

    name: str = ""
    capabilities: Capabilities = Capabilities()

    #: True once the transcript has shown structure, so that the agent's final message can be told from the
    #: rest. Until then completion is stricter: only the last line counts.
    structured: bool = False

    #: Whether the text of one event may continue the line of the event before it.
    pieces: bool = False

    def __init__(self, prompt: str | None = None) -> None:
        #: What the agent was given, if known, so that an adapter can recognise its echo in the output.
        self.prompt = prompt

    def feed(self, line: str) -> list[TranscriptEvent]:
        """The events of one line of stdout."""
        raise NotImplementedError

    def feed_stderr(self, line: str) -> list[TranscriptEvent]:
        """The events of one line of stderr. These are nobody's words unless an adapter knows better."""
        return [Text(Tag.SYS, line)]

    def flush(self) -> list[TranscriptEvent]:
        """What was held back, once the output has ended."""
        return []
