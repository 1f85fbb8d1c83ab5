"""The boundary around an adapter: whatever it does, no line is lost and nothing is raised."""

from __future__ import annotations

from ralph.transcripts import meta
from ralph.transcripts.base import Capabilities, TranscriptAdapter
from ralph.transcripts.events import Tag, Text, TranscriptEvent


class SafeAdapter(TranscriptAdapter):
    """Runs another adapter; a line on which it fails becomes a `parse_error` and SYS text."""

    def __init__(self, inner: TranscriptAdapter) -> None:
        self._inner = inner
        self.name = inner.name

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        return self._inner.capabilities

    @property
    def structured(self) -> bool:  # type: ignore[override]
        return self._inner.structured

    def feed(self, line: str) -> list[TranscriptEvent]:
        try:
            return self._inner.feed(line)
        except Exception as error:  # noqa: BLE001 - a boundary: an adapter's bug must not end a run
            return self._failed(error, line)

    def feed_stderr(self, line: str) -> list[TranscriptEvent]:
        try:
            return self._inner.feed_stderr(line)
        except Exception as error:  # noqa: BLE001 - a boundary: an adapter's bug must not end a run
            return self._failed(error, line)

    def flush(self) -> list[TranscriptEvent]:
        try:
            return self._inner.flush()
        except Exception as error:  # noqa: BLE001 - a boundary: an adapter's bug must not end a run
            return [meta.parse_error(f"adapter {self.name} failed at the end: {error!r}", "")]

    def _failed(self, error: Exception, line: str) -> list[TranscriptEvent]:
        message = f"adapter {self.name} failed on this line: {error!r}"
        return [meta.parse_error(message, line), Text(Tag.SYS, line)]
