"""What adapters of JSON formats share: one object a line, or one document over many lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from ralph.transcripts import meta
from ralph.transcripts.base import TranscriptAdapter
from ralph.transcripts.events import Tag, Text, TranscriptEvent, decode_json

if TYPE_CHECKING:
    from collections.abc import Callable


#: What reads usual lines: one decodes a line to its type, the other adds the events of that to a list, or leaves it
#: alone and says no.
Usual: TypeAlias = "tuple[Callable[[str], Any], Callable[[Any, list[TranscriptEvent]], bool]]"
#: What decoding a line may raise.
REFUSED = (msgspec.DecodeError, UnicodeEncodeError, RecursionError)

#: A pretty-printed document longer than this is not waited for any more.
_MAX_DOCUMENT = 64 << 20
_decode = msgspec.json.Decoder().decode
_CLOSING = {"{": "}", "[": "]"}
#: What a CLI on a terminal puts around its JSON. Inside JSON an escape is never raw.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-Z\\^-~])")


def strip_escapes(line: str) -> str:
    """A line as it reads: without a terminal's escape sequences and carriage return."""
    return (_ESCAPES.sub("", line) if "\x1b" in line else line).rstrip("\r")


class JsonAdapter(TranscriptAdapter):
    """Decodes lines; a subclass translates objects (`on_object`) and says what other lines are (`on_text`)."""

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._document: list[str] = []
        self._size = 0
        self._closing = ""
        #: words came; where no JSON came before them, JSON after them may be more of them
        self.spoken = False
        self.certain = False

    def expect_json(self) -> None:
        """JSON is certain to come, so any text before it is noise."""
        self.certain = True

    def on_object(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        """The events of one JSON object. Fields may be missing, of another type, or new."""
        raise NotImplementedError

    def recognises(self, value: dict[str, Any]) -> bool:
        """Whether the first object in the output is of this format, and not JSON that an agent wrote as its words."""
        return True

    def on_text(self, line: str) -> list[TranscriptEvent]:
        """A line that is no JSON: the agent's words in a text format, the CLI's noise in a JSON one."""
        return [Text(Tag.SYS if self.structured else Tag.AI, line)]

    def feed(self, line: str) -> list[TranscriptEvent]:
        if self._document:
            return self._continue(line)
        first = line[:1]
        if first not in ("{", "["):
            if first == "\x1b":
                return self._escaped(line)
            self.spoken = self.spoken or first.strip() != ""
            return self.on_text(line)
        try:
            value = _decode(line)
        except REFUSED:
            return self._difficult(line)
        if self.structured and type(value) is dict:
            return self.on_object(value)
        return self._decoded(value, line)

    def _difficult(self, line: str) -> list[TranscriptEvent]:
        """What msgspec refuses: half a surrogate pair, a document over many lines, escape sequences, no JSON at all."""
        try:
            value = decode_json(line)
        except (ValueError, RecursionError) as error:
            if line.rstrip() in _CLOSING:
                self._closing = _CLOSING[line.rstrip()]
                self._document = [line]
                self._size = len(line)
                return []
            return self._escaped(line, str(error)) if "\x1b" in line else self._broken(line, str(error))
        return self._decoded(value, line)

    def flush(self) -> list[TranscriptEvent]:
        """An unfinished document is shown as it came. Subclasses that override this call it first."""
        return self._give_up()

    def _continue(self, line: str) -> list[TranscriptEvent]:
        if self.structured and line[:1] == "{":
            return self._give_up() + self.feed(line)  # it was a lone brace, and the stream goes on
        if "\x1b" in line:
            line = _ESCAPES.sub("", line)
        self._document.append(line)
        self._size += len(line)
        if line.rstrip() != self._closing:
            return self._give_up() if self._size > _MAX_DOCUMENT else []
        text = "\n".join(self._document)
        try:
            value = decode_json(text)
        except (ValueError, RecursionError):
            return self._give_up()
        self._document = []
        return self._decoded(value, text)

    def _escaped(self, line: str, reason: str = "") -> list[TranscriptEvent]:
        """JSON with a terminal's escape sequences around it, or a coloured line of text."""
        bare = _ESCAPES.sub("", line)
        if bare[:1] in ("{", "[") and "\x1b" not in bare:
            return self.feed(bare)
        return self._broken(line, reason) if reason else self.on_text(line)

    def _give_up(self) -> list[TranscriptEvent]:
        lines, self._document = self._document, []
        return [event for line in lines for event in self.on_text(line)]

    def _decoded(self, value: Any, line: str) -> list[TranscriptEvent]:
        if isinstance(value, dict):
            if self.structured or self.recognises(value):
                return self.on_object(value)
            return self.on_text(line)
        objects = isinstance(value, list) and value and all(isinstance(v, dict) for v in value)
        if objects and (self.structured or self.recognises(value[0])):
            return [event for v in value for event in self.on_object(v)]
        return self.on_text(line)

    def _broken(self, line: str, reason: str) -> list[TranscriptEvent]:
        """Text that happens to begin with a brace, or in a JSON stream a line that was cut."""
        if not self.structured:
            return self.on_text(line)
        return [meta.parse_error(f"not JSON: {reason}", line), Text(Tag.SYS, line)]


#: No number is larger, but JSON may hold integers of any length.
_HUGE = 1 << 63
#: No count is larger; so many of them can be added up that the sum is still a number of 64 bits.
MOST = 1 << 53


# -- digging without surprises: a field that is missing or of another type is None


def get_dict(value: Any, key: str) -> dict[str, Any]:
    inner = value.get(key) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


def get_list(value: Any, key: str) -> list[Any]:
    inner = value.get(key) if isinstance(value, dict) else None
    return inner if isinstance(inner, list) else []


def get_str(value: Any, *keys: str) -> str | None:
    """The first of the keys that holds a non-empty string."""
    if isinstance(value, dict):
        for key in keys:
            inner = value.get(key)
            if isinstance(inner, str) and inner:
                return inner
    return None


def get_int(value: Any, *keys: str) -> int | None:
    """The first of the keys that holds a number."""
    if isinstance(value, dict):
        for key in keys:
            inner = value.get(key)
            if isinstance(inner, int | float) and not isinstance(inner, bool) and -_HUGE < inner < _HUGE:
                return int(inner)
    return None


def get_count(value: Any, *keys: str) -> int | None:
    """The first of the keys that holds a number of things: of tokens, of attempts, of milliseconds."""
    if isinstance(value, dict):
        for key in keys:
            inner = value.get(key)
            if isinstance(inner, int | float) and not isinstance(inner, bool) and 0 <= inner < MOST:
                return int(inner)
    return None


def get_float(value: Any, *keys: str) -> float | None:
    """The first of the keys that holds an amount or a time: none is negative."""
    if isinstance(value, dict):
        for key in keys:
            inner = value.get(key)
            if isinstance(inner, int | float) and not isinstance(inner, bool) and 0 <= inner < MOST:
                return float(inner)
    return None
