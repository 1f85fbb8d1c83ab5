"""The interface of a transcript adapter."""

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
    """Turns lines into events: stateful, but without I/O.

    Lines come without their newline. An adapter never raises and never drops a line that it does not understand: such a
    line becomes text. Subclasses set `name` and `capabilities` and implement `feed`.
    """

    name: str = ""
    capabilities: Capabilities = Capabilities()

    #: True once the transcript has shown structure, so that the agent's final message is known. Until then only the
    #: very last line can complete a run.
    structured: bool = False

    #: Whether the text of one event may continue the line of the previous event.
    pieces: bool = False

    def __init__(self, prompt: str | None = None) -> None:
        #: The agent's prompt, if known, so that an adapter can recognise its echo in the output.
        self.prompt = prompt

    def feed(self, line: str) -> list[TranscriptEvent]:
        """Return the events of one line of stdout."""
        raise NotImplementedError

    def feed_stderr(self, line: str) -> list[TranscriptEvent]:
        """Return the events of one line of stderr: system text, unless an adapter knows better."""
        return [Text(Tag.SYS, line)]

    def flush(self) -> list[TranscriptEvent]:
        """Return the events that were held back. Call it once, when the output has ended."""
        return []
