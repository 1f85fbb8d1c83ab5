"""`<event topic="T" target="H">payload</event>` in an agent's own words: a message from one role to the next."""

from __future__ import annotations

import re

import msgspec

from ralph.transcripts import meta
from ralph.transcripts.events import Tag, Text, ToolStart, TranscriptEvent

#: A tag whose end has not come after this many characters is text.
LONGEST = 64 << 10

_OPEN = "<event"
_CLOSE = "</event>"
_HEAD = re.compile(r'<event((?:\s+[A-Za-z_][\w-]*\s*=\s*"[^"]*")+)\s*>')
_ATTRIBUTE = re.compile(r'([A-Za-z_][\w-]*)\s*=\s*"([^"]*)"')


class Topic(msgspec.Struct, frozen=True):
    topic: str
    payload: str
    target: str | None = None


class TopicReader:
    """Reads the agent's words, one or more lines at a time. It keeps at most one tag that is still open."""

    def __init__(self) -> None:
        self._open: list[str] = []
        self._size = 0

    def feed(self, text: str) -> list[Topic]:
        """The events that are complete now."""
        if _OPEN not in text and _CLOSE not in text:
            if self._open:
                self._keep(text)
            return []
        found: list[Topic] = []
        rest = "\n".join([*self._open, text])
        self._drop()
        while True:
            start, end = rest.find(_OPEN), rest.find(_CLOSE)
            if start < 0 or end < 0:
                break
            if start < end:
                # tags do not nest: an end belongs to the last opening before it
                topic = _read(rest[rest.rfind(_OPEN, start, end) : end])
                if topic is not None:
                    found.append(topic)
            rest = rest[end + len(_CLOSE) :]
        start = rest.rfind(_OPEN)
        if start >= 0:
            self._keep(rest[start:])
        return found

    def _keep(self, text: str) -> None:
        self._open.append(text)
        self._size += len(text) + 1
        if self._size > LONGEST:
            self._drop()

    def _drop(self) -> None:
        self._open, self._size = [], 0

    def extend(self, events: list[TranscriptEvent]) -> list[TranscriptEvent]:
        """The same events, with each message to a topic after the words that contain it."""
        result: list[TranscriptEvent] | None = None
        for index, event in enumerate(events):
            more: list[Topic] = []
            if type(event) is Text:
                if event.tag is Tag.AI:
                    more = self.feed(event.text)
            elif self._open and type(event) is ToolStart:
                self._drop()  # its message is over
            if more and result is None:
                result = events[:index]
            if result is not None:
                result.append(event)
                result += [meta.topic(t.topic, t.target, t.payload) for t in more]
        return events if result is None else result


def _read(tag: str) -> Topic | None:
    head = _HEAD.match(tag)
    if head is None:
        return None
    attributes = dict(_ATTRIBUTE.findall(head.group(1)))
    topic = attributes.get("topic", "").strip()
    return Topic(topic, tag[head.end() :].strip(), attributes.get("target") or None) if topic else None
