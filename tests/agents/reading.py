"""What an adapter makes of lines, for the tests of all agents."""

from __future__ import annotations

import json
from typing import Any

from ralph.agents import adapters
from ralph.judging.replay import replay
from ralph.transcripts.events import Meta, Tag, Text, TranscriptEvent


def events_of(name: str, *lines: Any, stderr: str = "") -> list[TranscriptEvent]:
    """The events of a whole output. A line is a string, or an object to be written as JSON."""
    adapter = adapters.create(name)
    found = [event for line in stderr.splitlines() for event in adapter.feed_stderr(line)]
    for line in lines:
        found += adapter.feed(line if isinstance(line, str) else json.dumps(line, ensure_ascii=False))
    return found + adapter.flush()


def verdict_of(name: str, *lines: Any, stderr: str = "", code: int = 0) -> dict[str, Any]:
    """How an iteration with this output and exit code is judged."""
    out = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    *_, (last, _) = replay(out.encode(), stderr.encode(), name, code, None, None)
    assert isinstance(last[0], Meta)
    return last[0].meta


def texts(found: list[TranscriptEvent], tag: Tag = Tag.AI) -> list[str]:
    return [event.text for event in found if isinstance(event, Text) and event.tag is tag]


def metas(found: list[TranscriptEvent], kind: str) -> list[dict[str, Any]]:
    return [event.meta for event in found if isinstance(event, Meta) and event.meta["kind"] == kind]
