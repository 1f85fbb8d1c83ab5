"""Plain text: every line is the agent's words."""

from __future__ import annotations

from ralph.transcripts.base import TranscriptAdapter
from ralph.transcripts.events import Tag, Text, TranscriptEvent


class PlainAdapter(TranscriptAdapter):
    name = "plain"

    def feed(self, line: str) -> list[TranscriptEvent]:
        return [Text(Tag.AI, line)]


ADAPTER = PlainAdapter
