"""`ollama run` prints thoughts, then the answer; the HTTP API sends both as NDJSON. No tools, no sessions."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from ralph.transcripts import deltas, meta
from ralph.transcripts.base import Capabilities
from ralph.transcripts.classify import classify
from ralph.transcripts.deltas import DeltaLines
from ralph.transcripts.errors import CUT
from ralph.transcripts.events import Tag, Text, TranscriptEvent, Usage, UsageEvent
from ralph.transcripts.json_lines import JsonAdapter, get_count, get_dict, get_str, strip_escapes
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.numbers import whole

#: Word wrap: back over the word that does not fit, erase, newline, and the word again. Since 0.20 on pipes too.
_WRAP = re.compile(r"(?:\x1b\[(\d*)D)?\x1b\[K\r?\Z")
_SPINNER = re.compile(r"[\u2800-\u28ff\s]+")
_SIGN_IN = "You need to be signed in to Ollama"
_COUNT = re.compile(r"(prompt eval|eval) count:\s+(\d+) token")


class OllamaAdapter(JsonAdapter):
    name = "ollama"
    capabilities = Capabilities(supports_roles=True, supports_usage_events=True)

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._started = False
        self._thinking = False
        self._wrapped: list[str] = []
        self._wrapped_size = 0
        self._counts: dict[str, int] = {}
        self._words = DeltaLines(Tag.AI)
        self._thoughts = DeltaLines(Tag.THINK)
        self._unfinished = False

    # -- what `ollama run` prints

    def feed(self, line: str) -> list[TranscriptEvent]:
        if not self.structured and (self._wrapped or ("\x1b" in line and _WRAP.search(line))):
            return self.on_text(line)
        return super().feed(line)

    def on_text(self, line: str) -> list[TranscriptEvent]:
        if self.structured:
            return super().on_text(line)
        found = _WRAP.search(line) if "\x1b" in line else None
        if found:
            # One line of the answer spans several on the screen: a marker after a wrap is not on a line of its own.
            piece = _without_columns(strip_escapes(line[: found.start()]), whole(found.group(1) or "0"))
            if piece:
                self._wrapped.append(piece)
                self._wrapped_size += len(piece) + deltas.FRAGMENT
            return self._unwrapped() if self._wrapped_size > deltas.MAX_HELD else []
        self._wrapped.append(strip_escapes(line))
        return self._unwrapped()

    def _unwrapped(self) -> list[TranscriptEvent]:
        line = "".join(self._wrapped)
        self._wrapped, self._wrapped_size = [], 0
        if not self._started and line.strip():
            self._started = True
            if line.strip() == "Thinking...":
                self._thinking = True
                return []
            if line.startswith(_SIGN_IN):
                return [Text(Tag.SYS, line), meta.error(line.strip(), ErrorClass.AUTH)]
        if self._thinking:
            if line.strip() == "...done thinking.":
                self._thinking = False
                return []
            return [Text(Tag.THINK, line)]
        return [Text(Tag.AI, line)]

    def feed_stderr(self, line: str) -> list[TranscriptEvent]:
        bare = _SPINNER.sub(" ", strip_escapes(line)).strip()
        if not bare:
            return []
        if bare.startswith("Error: "):
            message = bare.removeprefix("Error: ")
            return [Text(Tag.SYS, bare), meta.error(message, classify(message))]
        found = _COUNT.match(bare)
        if found:
            self._counts[found.group(1)] = whole(found.group(2))
        return [Text(Tag.SYS, strip_escapes(line))]

    def flush(self) -> list[TranscriptEvent]:
        events = super().flush()
        if self._wrapped:
            events += self._unwrapped()
        events += self._thoughts.flush() + self._words.flush()
        if self._counts:
            events.append(UsageEvent(Usage(self._counts.get("prompt eval"), self._counts.get("eval"))))
            self._counts = {}
        if self._unfinished:
            self._unfinished = False
            events.append(meta.error(CUT))
        return events

    # -- /api/generate and /api/chat

    def recognises(self, value: dict[str, Any]) -> bool:
        if not isinstance(value.get("model"), str) or not isinstance(value.get("done"), bool):
            return False
        return "response" in value or isinstance(value.get("message"), dict)

    def on_object(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self.structured = True
        error = get_str(value, "error")
        if error:
            self._unfinished = False
            return [Text(Tag.SYS, error), meta.result(ok=False, reason=error, error_class=classify(error))]
        if "done" not in value:
            return [meta.unknown(value)]
        message = get_dict(value, "message")
        thought = get_str(message, "thinking") or get_str(value, "thinking") or ""
        text = get_str(message, "content") or get_str(value, "response") or ""
        events = self._thoughts.feed(thought)
        if text and not thought:
            events += self._thoughts.flush()
        events += self._words.feed(text)
        self._unfinished = value.get("done") is not True
        if self._unfinished:
            return events
        events += self._thoughts.flush() + self._words.flush()
        prompt, output = get_count(value, "prompt_eval_count"), get_count(value, "eval_count")
        if prompt is not None or output is not None:
            events.append(UsageEvent(Usage(prompt, output, model=get_str(value, "model"))))
        return [*events, meta.result(ok=True, reason=get_str(value, "done_reason"))]


def _without_columns(text: str, columns: int) -> str:
    """The text without its last columns as a terminal counts them: wide characters take two."""
    end = len(text)
    while columns > 0 and end > 0:
        end -= 1
        wide = unicodedata.east_asian_width(text[end]) in "WF"
        columns -= 2 if wide else 0 if unicodedata.combining(text[end]) else 1
    return text[:end]


ADAPTER = OllamaAdapter
