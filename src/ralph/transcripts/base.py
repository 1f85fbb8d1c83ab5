"""What a transcript adapter is."""

from __future__ import annotations

import msgspec

from ralph.transcripts.events import Tag, Text, TranscriptEvent


class Capabilities(msgspec.Struct, frozen=True):
    """What an adapter can tell. Features of the screen appear only where these allow them."""

    supports_roles: bool = False
    supports_tool_events: bool = False
    supports_usage_events: bool = False
    supports_prompt_hiding: bool = False


class TranscriptAdapter:
    """Lines in, events out: pure, stateful, no I/O.

    A line comes without its newline. An adapter never raises and never stays silent about a line it does not
    understand: that becomes text. Subclasses set `name` and `capabilities` and write `feed`.
    """

    name: str = ""
    capabilities: Capabilities = Capabilities()

    #: True once the transcript has shown structure, so that the agent's final message can be told from the
    #: rest. Completion is stricter (the last line alone counts) while it is False.
    structured: bool = False

    #: What the agent was given, if it is known: an adapter may recognise its echo in the output.
    prompt: str | None = None

    def feed(self, line: str) -> list[TranscriptEvent]:
        """The events of one line of stdout."""
        raise NotImplementedError

    def feed_stderr(self, line: str) -> list[TranscriptEvent]:
        """The events of one line of stderr. It is nobody's words unless an adapter knows better."""
        return [Text(Tag.SYS, line)]

    def flush(self) -> list[TranscriptEvent]:
        """What was held back, once the output has ended."""
        return []
