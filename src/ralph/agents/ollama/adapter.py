"""`ollama run`: thoughts, then the answer; and the NDJSON of its HTTP API. There are no tools and no sessions."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from ralph.transcripts import deltas, meta
from ralph.transcripts.base import Capabilities
from ralph.transcripts.classify import classify
from ralph.transcripts.deltas import DeltaLines
from ralph.transcripts.events import Tag, Text, TranscriptEvent, Usage, UsageEvent
from ralph.transcripts.json_lines import JsonAdapter, get_count, get_dict, get_str, strip_escapes
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.numbers import whole

#: Word wrap: back over the word that does not fit, erase, newline, and the word again. On pipes as well since 0.20.
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
        self._waits = False

    # -- what `ollama run` prints

    def feed(self, line: str) -> list[TranscriptEvent]:
        if self._wrapped or ("\x1b" in line and _WRAP.search(line)):
            return self.on_text(line)
        return super().feed(line)

    def on_text(self, line: str) -> list[TranscriptEvent]:
        if self.structured:
            return super().on_text(line)
        found = _WRAP.search(line) if "\x1b" in line else None
        if found:
            # One line of the answer over several of the screen: a marker at a wrap does not stand alone.
            kept = strip_escapes(line[: found.start()])
            piece = _back(kept, whole(found.group(1) or "0"))
            if piece:
                self._wrapped.append(piece)
                self._wrapped_size += len(piece) + deltas.FRAGMENT
            return self._unwrapped() if self._wrapped_size > deltas.MAX_HELD else []
        self._wrapped.append(strip_escapes(line))
        return self._unwrapped()

    def _unwrapped(self) -> list[TranscriptEvent]:
        line = "".join(self._wrapped)
        self._wrapped, self._wrapped_size = [], 0
        return self._line(line)

    def _line(self, line: str) -> list[TranscriptEvent]:
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
            name = "prompt_tokens" if found.group(1) == "prompt eval" else "completion_tokens"
            self._counts[name] = whole(found.group(2))
        return [Text(Tag.SYS, strip_escapes(line))]

    def flush(self) -> list[TranscriptEvent]:
        events = super().flush()
        if self._wrapped:
            events += self._unwrapped()
        events += self._thoughts.flush() + self._words.flush()
        if self._counts:
            events.append(UsageEvent(Usage(**self._counts)))  # type: ignore[arg-type]
            self._counts = {}
        if self._waits:
            self._waits = False
            events.append(meta.error("the output ends without a result", ErrorClass.FAILED))
        return events

    # -- /api/generate and /api/chat

    def recognises(self, value: dict[str, Any]) -> bool:
        if not isinstance(value.get("model"), str) or not isinstance(value.get("done"), bool):
            return False
        return "response" in value or isinstance(value.get("message"), dict)

    def on_object(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self.structured = True
        wrong = get_str(value, "error")
        if wrong:
            self._waits = False
            return [Text(Tag.SYS, wrong), meta.result(ok=False, reason=wrong, error_class=classify(wrong))]
        if "done" not in value:
            return [meta.unknown(value)]
        message = get_dict(value, "message")
        thought = get_str(message, "thinking") or get_str(value, "thinking") or ""
        text = get_str(message, "content") or get_str(value, "response") or ""
        events = self._thoughts.feed(thought)
        if text and not thought:
            events += self._thoughts.flush()
        events += self._words.feed(text)
        self._waits = value.get("done") is not True
        if self._waits:
            return events
        events += self._thoughts.flush() + self._words.flush()
        counts = {
            ours: number
            for ours, theirs in (("prompt_tokens", "prompt_eval_count"), ("completion_tokens", "eval_count"))
            if (number := get_count(value, theirs)) is not None
        }
        if counts:
            events.append(UsageEvent(Usage(**counts, model=get_str(value, "model"))))
        return [*events, meta.result(ok=True, reason=get_str(value, "done_reason"))]


def _back(text: str, columns: int) -> str:
    """The text without its last columns, as a terminal counts them."""
    while columns > 0 and text:
        columns -= 2 if unicodedata.east_asian_width(text[-1]) in "WF" else 0 if unicodedata.combining(text[-1]) else 1
        text = text[:-1]
    return text


ADAPTER = OllamaAdapter
