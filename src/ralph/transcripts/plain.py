"""Plain text: every line is the agent's own text, except for an echo of the prompt at the start."""

from __future__ import annotations

from ralph.transcripts.base import TranscriptAdapter
from ralph.transcripts.echo import PromptEcho
from ralph.transcripts.events import Tag, Text, TranscriptEvent


class PlainAdapter(TranscriptAdapter):
    name = "plain"

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._echo = PromptEcho(prompt)

    def feed(self, line: str) -> list[TranscriptEvent]:
        return [Text(Tag.PROMPT if self._echo.is_echo(line) else Tag.AI, line)]


ADAPTER = PlainAdapter
