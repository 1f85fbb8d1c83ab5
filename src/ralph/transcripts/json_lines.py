"""The base of adapters for JSON formats: one object per line, or one document over many lines."""

from __future__ import annotations

import re
from typing import Any

from ralph.transcripts import meta
from ralph.transcripts.base import TranscriptAdapter
from ralph.transcripts.events import Tag, Text, TranscriptEvent, decode_json

#: Stop waiting for the end of a pretty-printed document that is longer than this.
_MAX_DOCUMENT = 64 << 20
_CLOSING = {"{": "}", "[": "]"}
#: What a CLI on a terminal prints around its JSON. JSON itself never contains a raw escape character.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-Z\\^-~])")


def strip_escapes(line: str) -> str:
    """Return the line without terminal escape sequences and without a final carriage return."""
    return (_ESCAPES.sub("", line) if "\x1b" in line else line).rstrip("\r")


class JsonAdapter(TranscriptAdapter):
    """Decodes lines. A subclass translates objects (`on_object`) and decides what other lines are (`on_text`)."""

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._document: list[str] = []
        self._document_size = 0
        #: Text has come. If it came before any JSON, later JSON may be the agent's own words.
        self.spoken = False
        #: The output is known to be JSON, so text before it is noise.
        self.certain = False

    def expect_json(self) -> None:
        """Treat text before the first JSON object as noise."""
        self.certain = True

    def on_object(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        """Return the events of one JSON object. Its fields may be missing, new or of another type."""
        raise NotImplementedError

    def recognises(self, value: dict[str, Any]) -> bool:
        """Whether the first object in the output belongs to this format, and is not JSON that the agent wrote."""
        return True

    def on_text(self, line: str) -> list[TranscriptEvent]:
        """Return the events of a line that is not JSON: the agent's words in a text format, noise in a JSON one."""
        return [Text(Tag.SYS if self.structured else Tag.AI, line)]

    def feed(self, line: str) -> list[TranscriptEvent]:
        if self._document:
            return self._continue(line)
        first = line[:1]
        if first == "\x1b":
            return self._escaped(line)
        if first not in ("{", "["):
            self.spoken = self.spoken or first.strip() != ""
            return self.on_text(line)
        try:
            value = decode_json(line)
        except (ValueError, RecursionError) as error:
            return self._not_json(line, str(error))
        return self._decoded(value, line)

    def flush(self) -> list[TranscriptEvent]:
        """Return an unfinished document as text. Subclasses that override this call it first."""
        return self._give_up()

    def _decoded(self, value: Any, line: str) -> list[TranscriptEvent]:
        match value:
            case dict() if self.structured or self.recognises(value):
                return self.on_object(value)
            case [dict() as first, *_] if all(isinstance(one, dict) for one in value):
                if self.structured or self.recognises(first):
                    return [event for one in value for event in self.on_object(one)]
        return self.on_text(line)

    def _not_json(self, line: str, reason: str) -> list[TranscriptEvent]:
        """The first line of a document, JSON with escape sequences, or no JSON at all."""
        if line.rstrip() in _CLOSING:
            self._document = [line]
            self._document_size = len(line)
            return []
        return self._escaped(line, reason) if "\x1b" in line else self._broken(line, reason)

    def _continue(self, line: str) -> list[TranscriptEvent]:
        """One more line of a document."""
        if self.structured and line[:1] == "{":
            return self._give_up() + self.feed(line)  # it was a lone brace, and the stream continues
        if "\x1b" in line:
            line = _ESCAPES.sub("", line)
        self._document.append(line)
        self._document_size += len(line)
        if line.rstrip() != _CLOSING[self._document[0].rstrip()]:
            return self._give_up() if self._document_size > _MAX_DOCUMENT else []
        text = "\n".join(self._document)
        try:
            value = decode_json(text)
        except (ValueError, RecursionError):
            return self._give_up()
        self._document = []
        return self._decoded(value, text)

    def _give_up(self) -> list[TranscriptEvent]:
        lines, self._document = self._document, []
        return [event for line in lines for event in self.on_text(line)]

    def _escaped(self, line: str, reason: str = "") -> list[TranscriptEvent]:
        """JSON with terminal escape sequences around it, or a coloured line of text."""
        bare = _ESCAPES.sub("", line)
        if bare[:1] in ("{", "[") and "\x1b" not in bare:
            return self.feed(bare)
        return self._broken(line, reason) if reason else self.on_text(line)

    def _broken(self, line: str, reason: str) -> list[TranscriptEvent]:
        """Text that happens to begin with a brace or, in a JSON stream, a line that was cut."""
        if not self.structured:
            return self.on_text(line)
        return [meta.parse_error(f"not JSON: {reason}", line), Text(Tag.SYS, line)]


#: JSON may hold integers of any length; no valid number is larger than this.
_HUGE = 1 << 63
#: No valid count is larger than this. A thousand of them still add up to a 64-bit number.
MOST = 1 << 53


# Tolerant getters: a field that is missing or has another type is None (or empty).


def get_dict(value: Any, key: str) -> dict[str, Any]:
    inner = value.get(key) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


def get_list(value: Any, key: str) -> list[Any]:
    inner = value.get(key) if isinstance(value, dict) else None
    return inner if isinstance(inner, list) else []


def get_str(value: Any, *keys: str) -> str | None:
    """Return the first non-empty string among the keys."""
    if isinstance(value, dict):
        for key in keys:
            inner = value.get(key)
            if isinstance(inner, str) and inner:
                return inner
    return None


def get_text(value: Any, *keys: str) -> str | None:
    """Return the first non-empty text among the keys: a string, or a list of blocks that have texts, one a line."""
    for key in keys:
        inner = value.get(key) if isinstance(value, dict) else None
        if isinstance(inner, list):
            inner = "\n".join(t for t in (b if isinstance(b, str) else get_str(b, "text") for b in inner) if t)
        if isinstance(inner, str) and inner:
            return inner
    return None


def is_not_text(value: Any, *keys: str) -> bool:
    """Whether a field that should hold text holds something else, so that the line must be kept as `unknown`."""
    return isinstance(value, dict) and any(not isinstance(value.get(key), str | None) for key in keys)


def get_int(value: Any, *keys: str) -> int | None:
    """Return the first number among the keys."""
    number = _number(value, keys, -_HUGE, _HUGE)
    return None if number is None else int(number)


def get_count(value: Any, *keys: str) -> int | None:
    """Return the first number among the keys that can be a count of tokens, attempts or milliseconds."""
    number = _number(value, keys, 0, MOST)
    return None if number is None else int(number)


def get_float(value: Any, *keys: str) -> float | None:
    """Return the first number among the keys that can be an amount or a time: never a negative one."""
    number = _number(value, keys, 0, MOST)
    return None if number is None else float(number)


def _number(value: Any, keys: tuple[str, ...], least: int, below: int) -> int | float | None:
    if isinstance(value, dict):
        for key in keys:
            inner = value.get(key)
            if isinstance(inner, int | float) and not isinstance(inner, bool) and least <= inner < below:
                return inner
    return None
