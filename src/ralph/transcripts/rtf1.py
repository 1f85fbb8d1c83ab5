"""Ralph Transcript Format 1: `@@RALPH@@ ` and one event as JSON; any other line is plain text."""

from __future__ import annotations

from ralph.transcripts import meta
from ralph.transcripts.base import Capabilities, TranscriptAdapter
from ralph.transcripts.echo import PromptEcho
from ralph.transcripts.events import EventError, Meta, Tag, Text, TranscriptEvent, decode

SENTINEL = "@@RALPH@@ "
_LENGTH = len(SENTINEL)


class Rtf1Adapter(TranscriptAdapter):
    name = "rtf1"
    pieces = True  # an agent may print one event for each word that it gets
    capabilities = Capabilities(supports_roles=True, supports_tool_events=True, supports_usage_events=True)

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._echo = PromptEcho()

    def feed(self, line: str) -> list[TranscriptEvent]:
        if not line.startswith(SENTINEL):
            return [Text(Tag.PROMPT if self._echo.is_echo(line, self.prompt) else Tag.AI, line)]
        try:
            event = decode(line[_LENGTH:])
        except EventError as error:
            return [meta.parse_error(f"not an RTF1 event: {error}", line), Text(Tag.SYS, line)]
        self.structured = True
        if isinstance(event, Meta) and event.meta.get("kind") in meta.OURS:
            return [meta.unknown(event.meta)]  # what only ralph may say: an agent does not end a run by claiming so
        return [event]


ADAPTER = Rtf1Adapter
