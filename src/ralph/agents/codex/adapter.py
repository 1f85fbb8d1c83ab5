"""Codex: `--json` of every version, and the human transcript of every version.

Today's text goes to stderr, and only the last message to stdout; before 0.45 all of it went to stdout.
"""

from __future__ import annotations

from typing import Any

from ralph.agents.codex.blocks import HEADER
from ralph.agents.codex.errors import classify_message, limit
from ralph.agents.codex.items import ThreadItems
from ralph.agents.codex.legacy import LegacyMessages
from ralph.agents.codex.stamped import StampedTranscript
from ralph.agents.codex.text import HumanTranscript
from ralph.transcripts import deltas, meta
from ralph.transcripts.base import Capabilities
from ralph.transcripts.events import Tag, Text, TranscriptEvent
from ralph.transcripts.json_lines import JsonAdapter, Usual, strip_escapes

_FATAL = "Error: "


class CodexAdapter(JsonAdapter):
    name = "codex"
    capabilities = Capabilities(
        supports_roles=True, supports_tool_events=True, supports_usage_events=True, supports_prompt_hiding=True
    )

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._items = ThreadItems()
        self._legacy = LegacyMessages()
        #: the human transcript, on the stream where its first line was seen
        self._on_stdout: HumanTranscript | StampedTranscript | None = None
        self._on_stderr: HumanTranscript | StampedTranscript | None = None
        self._copy: list[str] = []
        self._copied = 0
        self._last_error: str | None = None

    def feed(self, line: str) -> list[TranscriptEvent]:
        if self.structured:
            return super().feed(line)
        if self._on_stdout is not None:
            return self._on_stdout.feed(line)
        if self._on_stderr is not None:
            # The last message once more. The two streams are read apart, so which comes first is chance: wait.
            self._copy.append(line)
            self._copied += len(line) + deltas.FRAGMENT
            return self._no_copy() if self._copied > deltas.MAX_HELD else []
        return super().feed(line)

    def usual(self) -> Usual | None:
        return self._items.usual if self._items.used else None

    def _no_copy(self) -> list[TranscriptEvent]:
        """No message is as long: whoever prints this without end does not fill the memory."""
        lines, self._copy, self._copied = self._copy, [], 0
        return [Text(Tag.AI, "\n".join(lines))]

    def recognises(self, value: dict[str, Any]) -> bool:
        return self._items.knows(value) or self._legacy.knows(value)

    def on_object(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self.structured = True
        if "type" in value:
            return self._items.feed(value)
        return self._legacy.feed(value) if self._legacy.knows(value) else [meta.unknown(value)]

    def on_text(self, line: str) -> list[TranscriptEvent]:
        if not self.structured:
            self._on_stdout = self._recognised(line)
            if self._on_stdout is not None:
                return self._on_stdout.feed(line)
        return super().on_text(line)

    def feed_stderr(self, line: str) -> list[TranscriptEvent]:
        if self._on_stderr is not None:
            return self._on_stderr.feed(line)
        if not self.structured and self._on_stdout is None:
            self._on_stderr = self._recognised(line)
            if self._on_stderr is not None:
                return self._on_stderr.feed(line)
        bare = strip_escapes(line)
        if bare.startswith(_FATAL):
            self._last_error = bare.removeprefix(_FATAL)
        return [Text(Tag.SYS, line)]

    def flush(self) -> list[TranscriptEvent]:
        events = super().flush()
        if self.structured:
            events += self._legacy.flush() + self._items.flush()
        error = self._last_error
        for transcript in (self._on_stdout, self._on_stderr):
            if transcript is not None:
                events += transcript.flush()
                if isinstance(transcript, HumanTranscript):
                    said = "\n".join(transcript.words).strip()
                    error = transcript.error or error
                    copy = "\n".join(self._copy).strip()
                    if copy:
                        error = None  # it prints its last message only if the turn ended well
                        if said and f"\n{copy}".endswith(f"\n{said}"):
                            copy = copy.removesuffix(said).rstrip()  # rather said twice than lost
                        if copy:
                            events.append(Text(Tag.AI, copy))
        self._copy, self._copied = [], 0
        if error is not None:
            kind = classify_message(error)
            events += [*limit(error, kind), meta.error(error, kind)]
        self._last_error = None
        return events

    def _recognised(self, line: str) -> HumanTranscript | StampedTranscript | None:
        found = HEADER.match(strip_escapes(line))
        if not found:
            return None
        return StampedTranscript() if found.group(1) else HumanTranscript(self.prompt)


ADAPTER = CodexAdapter
