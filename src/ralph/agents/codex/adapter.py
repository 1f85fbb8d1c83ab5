"""Codex: `--json` and the human-readable transcript, each in the forms of all versions."""

from __future__ import annotations

from typing import Any

from ralph.agents.codex.errors import classify_message, limit
from ralph.agents.codex.held import HeldLines
from ralph.agents.codex.items import ThreadItems
from ralph.agents.codex.legacy import LegacyMessages
from ralph.agents.codex.log import AnswerLog
from ralph.agents.codex.shapes import HEADER
from ralph.agents.codex.stamped import StampedTranscript
from ralph.agents.codex.text import TextTranscript
from ralph.transcripts import meta
from ralph.transcripts.base import Capabilities
from ralph.transcripts.events import Tag, Text, TranscriptEvent
from ralph.transcripts.json_lines import JsonAdapter, strip_escapes

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
        self._log = AnswerLog()
        #: the reader of the human-readable transcript, once its first line was seen on one of the streams
        self._on_stdout: TextTranscript | StampedTranscript | None = None
        self._on_stderr: TextTranscript | StampedTranscript | None = None
        #: stdout, if the transcript is on stderr: only the last message, once more
        self._copy = HeldLines(lambda lines: [Text(Tag.AI, "\n".join(lines))])
        self._last_error: str | None = None

    def feed(self, line: str) -> list[TranscriptEvent]:
        if self._on_stdout is not None:
            return self._on_stdout.feed(line)
        if self._on_stderr is not None:
            # Nobody knows which stream is read first, so the copy waits until the message itself was read.
            return self._copy.add(line)
        return super().feed(line)

    def recognises(self, value: dict[str, Any]) -> bool:
        return self._items.knows(value) or self._legacy.knows(value)

    def on_object(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self.structured = True
        if "type" in value:
            return self._items.feed(value)
        return self._legacy.feed(value) if self._legacy.knows(value) else [meta.unknown(value)]

    def on_text(self, line: str) -> list[TranscriptEvent]:
        if self.structured and (used := self._log.read(line)) is not None:  # a terminal mixes both streams
            return self._items.answer(used)
        if not self.structured:
            self._on_stdout = self._transcript(line)
            if self._on_stdout is not None:
                return self._on_stdout.feed(line)
        return super().on_text(line)

    def feed_stderr(self, line: str) -> list[TranscriptEvent]:
        if self._on_stderr is not None:
            return self._on_stderr.feed(line)
        if not self.structured and self._on_stdout is None:
            self._on_stderr = self._transcript(line)
            if self._on_stderr is not None:
                return self._on_stderr.feed(line)
        if (used := self._log.read(line)) is not None:
            return self._items.answer(used)
        bare = strip_escapes(line)
        if bare.startswith(_FATAL):
            self._last_error = bare.removeprefix(_FATAL)
        return [Text(Tag.SYS, line)]

    def flush(self) -> list[TranscriptEvent]:
        events = super().flush()
        if self.structured:
            events += self._legacy.flush() + self._items.flush()
        error, self._last_error = self._last_error, None
        transcript = self._on_stdout or self._on_stderr
        if transcript is not None:
            events += transcript.flush()
            error = transcript.error or error
            copy = "\n".join(self._copy.take()).strip()
            if copy:
                error = None  # Codex prints its last message only if the turn ended well
                events += _without(copy, transcript.last_message)
        if error is not None:
            kind = classify_message(error)
            events += [*limit(error, kind), meta.error(error, kind)]
        return events

    def _transcript(self, line: str) -> TextTranscript | StampedTranscript | None:
        found = HEADER.match(strip_escapes(line))
        if not found:
            return None
        return StampedTranscript() if found.group(1) else TextTranscript(self.prompt)


def _without(copy: str, message: str) -> list[TranscriptEvent]:
    """The copy of the last message, as far as it is not the message itself. What is not certain is shown twice."""
    if message and f"\n{copy}".endswith(f"\n{message}"):
        copy = copy.removesuffix(message).rstrip()
    return [Text(Tag.AI, copy)] if copy else []


ADAPTER = CodexAdapter
