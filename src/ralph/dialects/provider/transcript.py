"""Claude's transcript by that convention's rules: patterns in the text, and wrappers that always end well."""

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

#: What the adapter says of a stream that nothing ended. Here the exit code decides.
_NO_RESULT = "the output ends without a result"
#: Lines before the first event are kept for so long: only then it shows whether they are noise, or all there is.
_HELD = 64
_BARE = {"kind": Kind.RESULT.value, "ok": True}


class Pattern(msgspec.Struct, frozen=True):
    text: str
    setting: str
    means: ErrorClass

    @property
    def needle(self) -> str:
        return self.text.strip().lower()


def patterns_of(settings: Settings) -> list[Pattern]:
    """In the order in which they count: a limit that is also an error is a limit."""
    return [
        Pattern(text, setting, means)
        for setting, means in (
            ("claude_limit_patterns", ErrorClass.RATE_LIMITED),
            ("claude_retry_patterns", ErrorClass.OVERLOADED),
            ("claude_error_patterns", ErrorClass.FAILED),
        )
        for text in getattr(settings, setting)
        if text.strip()
    ]


class ProviderAdapter(TranscriptAdapter):
    """Another adapter, with this convention's last word about how it ended."""

    def __init__(self, inner: TranscriptAdapter, patterns: list[Pattern], wait: float = 0.0) -> None:
        self._inner = inner
        if isinstance(inner, JsonAdapter):
            inner.expect_json()  # a wrapper may say anything before its first event
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
            return self._look(events)
        if self._inner.structured:
            noise, self._held = self._held, None
            return self._look([*(_said_by_nobody(e) for e in noise), *events])
        self._held += events
        return self._release() if len(self._held) > _HELD else []

    def _release(self) -> list[TranscriptEvent]:
        """It is no stream of events: the lines are the words."""
        events, self._held = self._held or [], None
        return self._look(events)

    def feed_stderr(self, line: str) -> list[TranscriptEvent]:
        return self._look(self._inner.feed_stderr(line))

    def flush(self) -> list[TranscriptEvent]:
        events = self._release()
        events += [e for e in self._look(self._inner.flush()) if not _is_missing_result(e)]
        if self._found is None:
            return events
        found = self._found
        if found.means is ErrorClass.RATE_LIMITED and self._wait:
            events.append(meta.rate_limit(retry_after=self._wait))
        reason = f"its output says '{found.text.strip()}', which is one of {found.setting}"
        return [*events, meta.result(ok=False, reason=reason, error_class=found.means)]

    def _look(self, events: list[TranscriptEvent]) -> list[TranscriptEvent]:
        kept: list[TranscriptEvent] = []
        for event in events:
            match event:
                case Text(tag=tag, text=text):
                    self._search(text)
                    if tag is Tag.AI and text.strip():
                        self._failed = None  # it went on
                case ToolStart():
                    self._failed = None
                case Meta(meta=fields) if fields.get("kind") == Kind.RESULT:
                    if fields.get("ok") is False:
                        self._failed = event
                    elif self._failed is not None and fields == _BARE:
                        continue  # the line that a wrapper prints in any case takes nothing back
            kept.append(event)
        return kept

    def _search(self, text: str) -> None:
        """The strongest pattern that any text holds."""
        if not self._patterns:
            return
        lower = text.lower()
        for pattern in self._patterns:
            if pattern is self._found:
                return
            if pattern.needle in lower:
                self._found = pattern
                return


def _said_by_nobody(event: TranscriptEvent) -> TranscriptEvent:
    """Noise in front of a stream, an echo of the prompt perhaps."""
    return Text(Tag.SYS, event.text) if isinstance(event, Text) else event


def _is_missing_result(event: TranscriptEvent) -> bool:
    return isinstance(event, Meta) and event.meta.get("message") == _NO_RESULT
