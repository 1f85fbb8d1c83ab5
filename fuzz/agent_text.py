"""What is read from the agent's own text: signals of every convention, and messages to topics.

In an input, byte 3 marks an event other than text; the rest is text, line by line.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fuzz.checks import choices, require
from fuzz.memory import size
from ralph.dialects.driver.status import StatusReader
from ralph.dialects.provider.signals import RalphexReader
from ralph.dialects.script.response import ResponseReader
from ralph.judging.signals import Claim, FinalMessage, Markers, Signal, SignalReader
from ralph.judging.topics import TopicReader

if TYPE_CHECKING:
    from collections.abc import Callable

_MARKERS = Markers()
_MARKER = re.compile(rf"([*_`]{{0,8}})(?:{'|'.join(map(re.escape, _MARKERS.complete))})([*_`]{{0,8}})")
_BOUNDARY = "\x03"
#: How much the readers may keep for any input; the longest is a question of 64 KiB.
_ROOM = 400 << 10


def signals(data: bytes) -> None:
    messages = data.decode("utf-8", "replace").split(_BOUNDARY)
    _final(messages)
    for create in (lambda: StatusReader(_MARKERS), lambda: RalphexReader(), lambda: FinalMessage(_MARKERS)):
        _same_by_lines(create, messages)
    response = ResponseReader(_MARKERS)
    response.respond(messages[-1])
    claim = response.claim(structured=True)
    require(claim.signal is not Signal.COMPLETE or _has_marker_line(messages[-1]), "a response completes", claim)
    if choices(data).random() < 0.002:
        _bounded(messages)


def _claims(create: Callable[[], SignalReader], messages: list[list[str]]) -> tuple[Claim, Claim]:
    reader = create()
    for index, pieces in enumerate(messages):
        if index:
            reader.boundary()
        for piece in pieces:
            reader.feed(piece)
    return reader.claim(structured=True), reader.claim(structured=False)


def _same_by_lines(create: Callable[[], SignalReader], messages: list[str]) -> None:
    """A message means the same whether it arrives at once or line by line."""
    whole = _claims(create, [[m] for m in messages])
    lines = _claims(create, [m.split("\n") for m in messages])
    signals = [claim.signal for claim in whole], [claim.signal for claim in lines]
    require(signals[0] == signals[1], "the same claim at once and line by line", create(), messages, whole, lines)


def _final(messages: list[str]) -> None:
    structured, plain = _claims(lambda: FinalMessage(_MARKERS), [[m] for m in messages])
    last = ""  # the last message: text that is followed only by text
    for index, message in enumerate(messages):
        last = message if index and message.strip() else last + "\n" + message if index else message
    if structured.signal is Signal.COMPLETE:
        require(_has_marker_line(last), "completed, but no line of the last message is a marker", messages)
    elif _has_marker_line(last) and "```" not in last and "~~~" not in last:
        require(False, "a line of the last message is a marker, but it is not complete", messages, structured)
    ends_so = _is_marker(messages[-1].strip().rpartition("\n")[2])
    require((plain.signal is Signal.COMPLETE) == ends_so, "plain: the last line decides", messages, plain)


def _has_marker_line(message: str) -> bool:
    return any(_is_marker(line) for line in message.split("\n"))


def _is_marker(line: str) -> bool:
    """Alone on its line, also in emphasis or as inline code."""
    found = _MARKER.fullmatch(line.strip())
    return found is not None and found[1] == found[2][::-1]


def _bounded(messages: list[str]) -> None:
    for reader in (FinalMessage(_MARKERS), StatusReader(_MARKERS), RalphexReader()):
        for _ in range(1 + (2 * _ROOM) // (1 + sum(map(len, messages)))):
            for message in messages:
                reader.feed(message)
        require(size(reader) < _ROOM, "a reader keeps too much", size(reader), messages)


def topics(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    whole = TopicReader().feed(text)
    require(len(whole) <= text.count("</event>"), "there are no more messages than closing tags", whole)
    for topic in whole:
        require(topic.payload in text, "a payload was printed", topic)
        require(bool(topic.topic) and topic.topic in text, "a topic has a name", topic)
    reader = TopicReader()
    lines = [topic for line in text.split("\n") for topic in reader.feed(line)]
    require(lines == whole, "the same messages at once and line by line", whole, lines)
    for _ in range(300 if choices(data).random() < 0.05 else 0):
        reader.feed(text)
    require(size(reader) < 512 << 10, "the reader keeps too much", size(reader))
