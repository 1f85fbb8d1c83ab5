"""Claude's transcript under the rules of this convention: patterns in the text, and wrappers that always succeed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ralph.transcripts import meta
from ralph.transcripts.base import Capabilities, TranscriptAdapter
from ralph.transcripts.errors import is_cut
from ralph.transcripts.events import Meta, Tag, Text, ToolStart, TranscriptEvent
from ralph.transcripts.json_lines import JsonAdapter
from ralph.transcripts.meta import ErrorClass, Kind

if TYPE_CHECKING:
    from ralph.config.settings import Settings

#: Hold back at most this many events before the first JSON object. Only then it is clear whether they are noise.
_MOST_HELD = 64
#: The result line that some wrappers print in any case.
_BARE_RESULT = {"kind": Kind.RESULT.value, "ok": True}


class Pattern(msgspec.Struct, frozen=True):
    text: str
    setting: str
    error_class: ErrorClass

    @property
    def needle(self) -> str:
        return self.text.strip().lower()


def patterns_of(settings: Settings) -> list[Pattern]:
    """Return the patterns in order of precedence: a limit that is also an error is a limit."""
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
    """Wraps another adapter and applies this convention's rules for how an iteration ended."""

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
            return self._inspect([*(_as_system_text(e) for e in noise), *events])
        self._held += events
        return self._release() if len(self._held) > _MOST_HELD else []

    def _release(self) -> list[TranscriptEvent]:
        """Stop waiting for a stream of events: the lines are the agent's own text."""
        events, self._held = self._held or [], None
        return self._inspect(events)

    def feed_stderr(self, line: str) -> list[TranscriptEvent]:
        return self._inspect(self._inner.feed_stderr(line))

    def flush(self) -> list[TranscriptEvent]:
        events = self._release()
        # Here the exit code decides about a stream without a result.
        events += [e for e in self._inspect(self._inner.flush()) if not is_cut(e)]
        if self._found is None:
            return events
        found = self._found
        if found.error_class is ErrorClass.RATE_LIMITED and self._wait:
            events.append(meta.rate_limit(retry_after=self._wait))
        reason = f"the output contains '{found.text.strip()}', which is one of {found.setting}"
        return [*events, meta.result(ok=False, reason=reason, error_class=found.error_class)]

    def _inspect(self, events: list[TranscriptEvent]) -> list[TranscriptEvent]:
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
                        continue  # it does not undo a failure
            kept.append(event)
        return kept

    def _search(self, text: str) -> None:
        """Remember the pattern with the highest precedence that any text contains."""
        if not self._patterns:
            return
        lower = text.lower()
        for pattern in self._patterns:
            if pattern is self._found:
                return
            if pattern.needle in lower:
                self._found = pattern
                return


def _as_system_text(event: TranscriptEvent) -> TranscriptEvent:
    """Noise before a stream, such as an echo of the prompt."""
    return Text(Tag.SYS, event.text) if isinstance(event, Text) else event
