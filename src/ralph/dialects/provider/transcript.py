"""Reads the transcript of a provider: error patterns in its text, and wrappers that always report success."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ralph.transcripts import meta
from ralph.transcripts.base import Capabilities, TranscriptAdapter
from ralph.transcripts.events import Meta, Tag, Text, ToolStart, TranscriptEvent
from ralph.transcripts.json_lines import JsonAdapter
from ralph.transcripts.meta import ErrorClass, Kind

if TYPE_CHECKING:
    from ralph.config.settings import Settings

#: How Claude's adapter reports a missing result. In this convention the exit code decides instead.
_NO_RESULT = "the output ends without a result"
#: How many plain lines are held back until it is clear whether they are noise before JSON, or plain output.
_MAX_HELD = 64
_BARE_RESULT = {"kind": Kind.RESULT.value, "ok": True}


class Pattern(msgspec.Struct, frozen=True):
    text: str
    setting: str
    error_class: ErrorClass

    @property
    def needle(self) -> str:
        return self.text.strip().lower()


def patterns_of(settings: Settings) -> list[Pattern]:
    """All configured patterns, the strongest first: a limit that is also an error counts as a limit."""
    return [
        Pattern(text, setting, error_class)
        for setting, error_class in (
            ("claude_limit_patterns", ErrorClass.RATE_LIMITED),
            ("claude_retry_patterns", ErrorClass.OVERLOADED),
            ("claude_error_patterns", ErrorClass.FAILED),
        )
        for text in getattr(settings, setting)
        if text.strip()
    ]


class ProviderAdapter(TranscriptAdapter):
    """Adds the rules of this convention to another adapter. They decide how an iteration ended."""

    def __init__(self, inner: TranscriptAdapter, patterns: list[Pattern], wait: float = 0.0) -> None:
        self._inner = inner
        if isinstance(inner, JsonAdapter):
            inner.expect_json()  # a wrapper may print anything before its first event
        self.name = inner.name
        self._patterns = patterns
        self._found: Pattern | None = None
        self._wait = wait
        self._failed: Meta | None = None
        self._held: list[TranscriptEvent] | None = [] if inner.name == "claude" else None

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        return self._inner.capabilities

    @property
    def structured(self) -> bool:  # type: ignore[override]
        return self._inner.structured

    def feed(self, line: str) -> list[TranscriptEvent]:
        events = self._inner.feed(line)
        if self._held is None:
            return self._inspect(events)
        if self._inner.structured:
            noise, self._held = self._held, None
            return self._inspect([*(_as_noise(e) for e in noise), *events])
        self._held += events
        return self._release() if len(self._held) > _MAX_HELD else []

    def _release(self) -> list[TranscriptEvent]:
        """Treats the held lines as the agent's own text, because there is no JSON."""
        events, self._held = self._held or [], None
        return self._inspect(events)

    def feed_stderr(self, line: str) -> list[TranscriptEvent]:
        return self._inspect(self._inner.feed_stderr(line))

    def flush(self) -> list[TranscriptEvent]:
        events = self._release()
        events += [e for e in self._inspect(self._inner.flush()) if not _is_missing_result(e)]
        if self._found is None:
            return events
        found = self._found
        if found.error_class is ErrorClass.RATE_LIMITED and self._wait:
            events.append(meta.rate_limit(retry_after=self._wait))
        reason = f"its output contains '{found.text.strip()}', which is in {found.setting}"
        return [*events, meta.result(ok=False, reason=reason, error_class=found.error_class)]

    def _inspect(self, events: list[TranscriptEvent]) -> list[TranscriptEvent]:
        """Searches the text for patterns, and drops a success that follows a failure without any work in between."""
        kept: list[TranscriptEvent] = []
        for event in events:
            match event:
                case Text(tag=tag, text=text):
                    self._search(text)
                    if tag is Tag.AI and text.strip():
                        self._failed = None  # the agent continued
                case ToolStart():
                    self._failed = None
                case Meta(meta=fields) if fields.get("kind") == Kind.RESULT:
                    if fields.get("ok") is False:
                        self._failed = event
                    elif self._failed is not None and fields == _BARE_RESULT:
                        continue  # wrappers print this line in any case
            kept.append(event)
        return kept

    def _search(self, text: str) -> None:
        """Remembers the strongest pattern that any text contains."""
        if not self._patterns:
            return
        lower = text.lower()
        for pattern in self._patterns:
            if pattern is self._found:
                return
            if pattern.needle in lower:
                self._found = pattern
                return


def _as_noise(event: TranscriptEvent) -> TranscriptEvent:
    """Text before a JSON stream is not the agent's own. It may even be an echo of the prompt."""
    return Text(Tag.SYS, event.text) if isinstance(event, Text) else event


def _is_missing_result(event: TranscriptEvent) -> bool:
    return isinstance(event, Meta) and event.meta.get("message") == _NO_RESULT
