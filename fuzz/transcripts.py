"""Adapters: no line raises an exception, and all events are consistent."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING

import msgspec

from fuzz import memory
from fuzz.checks import choices, require
from fuzz.new_ids import New
from fuzz.streams import Streams
from ralph.agents import adapters as registry
from ralph.config.settings import Settings
from ralph.dialects.provider.transcript import ProviderAdapter, patterns_of
from ralph.judging.judge import judge
from ralph.judging.observe import Observation
from ralph.judging.replay import verdict_event
from ralph.judging.signals import Markers
from ralph.judging.topics import TopicReader
from ralph.runners.process import Ended, EndKind, describe_status
from ralph.transcripts import meta
from ralph.transcripts.events import (
    Meta,
    Tag,
    Text,
    ToolEnd,
    ToolStart,
    TranscriptEvent,
    Usage,
    UsageEvent,
    decode,
    encode,
)
from ralph.transcripts.safe import SafeAdapter, sane
from ralph.ui.render import Renderer

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from ralph.transcripts.base import TranscriptAdapter

#: Claude's stream with the rules of the provider convention.
PROVIDER = "provider"
#: Characters that JSON, or joining lines, may add to an agent's text.
_PUNCTUATION = frozenset(' \n\t\r{}[]",:\ufffd')
_SHORT = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_ESCAPE = re.compile(
    r"\\(?:(?P<pair>u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?P<code>u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|U[0-9a-fA-F]{8})|(?P<octal>[0-7]{1,3})|(?P<short>.))",
    re.DOTALL,
)
_PATTERNS = Settings(claude_limit_patterns=("limit",), claude_error_patterns=("error",))


def names() -> list[str]:
    return [*registry.names(), PROVIDER]


def target(name: str) -> Callable[[bytes], None]:
    return partial(check, name)


def create(name: str, prompt: str | None) -> TranscriptAdapter:
    if name != PROVIDER:
        return registry.create(name, prompt=prompt)
    return ProviderAdapter(registry.create("claude", prompt=prompt), patterns_of(_PATTERNS), wait=5.0)


def check(name: str, data: bytes) -> None:
    streams = Streams.of(data)
    events = run(name, streams)
    for event in events:
        _event(event)
    if name != "rtf1":  # a custom agent's events are passed on unchanged
        _tools(events)
    if name == "plain":
        given = [text for on_stderr, text in streams.lines if not on_stderr]
        texts = [e.text for e in events if isinstance(e, Text) and e.tag is not Tag.SYS]
        require(texts == given, "every line is passed on unchanged", given, texts)
    elif b"\x1b" not in data:
        _own_text(events, data.decode("utf-8", "replace"))
    _judged(events)
    rng = choices(data)
    if rng.random() < 0.3:
        many = _in_blocks(name, streams, rng)
        events = sane(events)  # as in a run
        require(many == events, "the same events for lines one by one and many at once", many, events)
    if rng.random() < 0.005 and streams.lines:
        memory.check(partial(create, name, streams.prompt), [rng.choice(streams.lines)])
    if rng.random() < 0.005 and streams.lines:
        at = rng.randrange(len(streams.lines))
        some = streams.lines[at : at + rng.randint(1, 4)]
        memory.check_new_ids(partial(create, name, streams.prompt), streams.lines[:at], some, rng.choice(list(New)))


def run(name: str, streams: Streams) -> list[TranscriptEvent]:
    adapter = create(name, streams.prompt)
    events: list[TranscriptEvent] = []
    structured = False
    for on_stderr, line in streams.lines:
        events += adapter.feed_stderr(line) if on_stderr else adapter.feed(line)
        require(adapter.structured or not structured, "a structured transcript stays structured", line)
        structured = adapter.structured
    return events + adapter.flush()


def _in_blocks(name: str, streams: Streams, rng: random.Random) -> list[TranscriptEvent]:
    """Feeds lines as the loop does: all lines that arrived together."""
    adapter = SafeAdapter(create(name, streams.prompt))
    events: list[TranscriptEvent] = []
    at = 0
    while at < len(streams.lines):
        on_stderr = streams.lines[at][0]
        most = at + rng.randint(1, 12)
        here = takewhile(lambda one, same=on_stderr: one[0] == same, streams.lines[at:most])  # type: ignore[misc]
        lines = [line for _, line in here]
        events += adapter.feed_stderr_lines(lines) if on_stderr else adapter.feed_lines(lines)
        at += len(lines)
    return events + adapter.flush()


def _event(event: TranscriptEvent) -> None:
    if decode(encode(event)) != event:
        require(_is_deep(event), "an event equals its decoded JSON", event)
    match event:
        case UsageEvent(usage=usage):
            _usage(usage)
        case ToolEnd(tool=tool):
            require(tool.duration_ms is None or tool.duration_ms >= 0, "a duration is not negative", event)
        case Meta(meta=fields):
            require(fields.get("kind") not in meta.OURS, "an agent's event has a kind reserved for ralph", fields)
            for name in ("resets_at", "retry_after"):
                if isinstance(fields.get(name), float):
                    require(math.isfinite(fields[name]), f"{name} is a time", fields)


def _is_deep(event: TranscriptEvent) -> bool:
    """Whether it is nested so deeply that only a part of it may be written."""
    level: list[object] = [msgspec.structs.asdict(event)]
    for _ in range(100):
        level = [
            v for one in level if isinstance(one, dict | list) for v in (one.values() if isinstance(one, dict) else one)
        ]
    return bool(level)


def _usage(usage: Usage) -> None:
    for name, value in msgspec.structs.asdict(usage).items():
        if isinstance(value, int | float):
            require(0 <= value < 1 << 63, f"{name} is a possible number", usage)


def _tools(events: list[TranscriptEvent]) -> None:
    """A tool call ends only after it started, and at most once per start."""
    open_calls: Counter[str] = Counter()
    for event in events:
        if isinstance(event, ToolStart):
            open_calls[event.tool.id] += 1
        elif isinstance(event, ToolEnd):
            open_calls[event.tool.id] -= 1
            require(open_calls[event.tool.id] >= 0, "a tool call ends that never started", event)


def _own_text(events: list[TranscriptEvent], given: str) -> None:
    """No character occurs more often than it was printed: nothing is invented, and nothing is repeated."""
    text = Counter("".join(e.text for e in events if isinstance(e, Text) and e.tag is Tag.AI))
    printed = Counter(given)
    for _ in range(2):  # JSON may be nested in JSON
        # A terminal breaks lines anywhere, even within an escape.
        printed |= Counter(unescaped(given.replace("\n", "")))
        given = unescaped(given)
        printed |= Counter(given)
    more = {sign for sign, times in text.items() if times > printed[sign] and sign not in _PUNCTUATION}
    require(not more, "the agent's text has characters that it did not print", more, events, given)


def unescaped(text: str) -> str:
    """The text with the escapes of JSON strings and of Python's repr resolved."""
    return _ESCAPE.sub(_resolved, text)


def _resolved(found: re.Match[str]) -> str:
    if found["octal"]:
        return chr(int(found["octal"], 8))
    code = found["pair"] or found["code"]
    if code is None:
        return _SHORT.get(found["short"], found["short"])
    numbers = [int(digits, 16) for digits in re.findall("[0-9a-fA-F]{2,}", code)]
    return "".join(map(chr, numbers)).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _judged(events: list[TranscriptEvent]) -> None:
    """Everything after the adapter accepts its events."""
    seen = Observation(Markers())
    topics = TopicReader()
    for event in topics.extend(events):
        encode(event)
    seen.feed(events)
    shown = Renderer()
    for event in events:
        shown.lines(event)
    _usage(seen.usage)
    for status in (0, 1, -9):
        ended = Ended(EndKind.EXITED, describe_status(status), status)
        verdict = judge(ended, seen, structured=True)
        encode(verdict_event(verdict, seen))
        if verdict.completed:
            words = "\n".join(e.text for e in events if isinstance(e, Text) and e.tag is Tag.AI)
            require(any(m in words for m in Markers().complete), "completed without a marker in its text", verdict)
