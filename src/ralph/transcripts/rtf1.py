"""Ralph Transcript Format 1: `@@RALPH@@ ` followed by one event as JSON. Any other line is plain text."""

from __future__ import annotations

from ralph.transcripts import meta
from ralph.transcripts.base import Capabilities
from ralph.transcripts.events import EventError, Meta, Tag, Text, TranscriptEvent, decode
from ralph.transcripts.plain import PlainAdapter

SENTINEL = "@@RALPH@@ "


class Rtf1Adapter(PlainAdapter):
    name = "rtf1"
    pieces = True  # an agent may print one event for each token
    capabilities = Capabilities(supports_roles=True, supports_tool_events=True, supports_usage_events=True)

    def feed(self, line: str) -> list[TranscriptEvent]:
        if not line.startswith(SENTINEL):
            return super().feed(line)
        try:
            event = decode(line.removeprefix(SENTINEL))
        except EventError as error:
            return [meta.parse_error(f"not an RTF1 event: {error}", line), Text(Tag.SYS, line)]
        self.structured = True
        if isinstance(event, Meta) and not _is_allowed(event.meta.get("kind")):
            return [meta.unknown(event.meta)]
        return [event]


def _is_allowed(kind: object) -> bool:
    """Whether an agent may send this kind of meta event: it must not claim, for example, that the run has ended."""
    return kind is None or (isinstance(kind, str) and kind not in meta.OURS)


ADAPTER = Rtf1Adapter
