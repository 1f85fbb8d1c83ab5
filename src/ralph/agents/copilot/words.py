"""Copilot's words and thoughts: fragments first (unless streaming is off), then each message whole."""

from __future__ import annotations

from typing import Any

import msgspec

from ralph.transcripts import recent
from ralph.transcripts.deltas import DeltaLines, Shown
from ralph.transcripts.events import Tag, Text, TranscriptEvent
from ralph.transcripts.json_lines import get_str, get_text
from ralph.transcripts.recent import Recent, RecentKeys


class _Stream(msgspec.Struct):
    id: str | None
    lines: DeltaLines


class Words:
    """One stream is open for each agent. `agent` is empty for the main one, whose words count."""

    def __init__(self) -> None:
        self._open: dict[str, _Stream] = {}
        self._streamed = Recent[str, Shown]()  # what has come of each message that another one interrupted
        self._thought = Recent[str, str]()
        self._thinking = RecentKeys[str]()

    def message_delta(self, data: dict[str, Any], agent: str) -> list[TranscriptEvent]:
        return self._delta(data, get_str(data, "messageId"), agent, _tag(agent, Tag.AI))

    def reasoning_delta(self, data: dict[str, Any], agent: str) -> list[TranscriptEvent]:
        if get_str(data, "deltaContent"):
            self._thinking.add(agent)
        return self._delta(data, get_str(data, "reasoningId"), agent, _tag(agent, Tag.THINK))

    def message(self, data: dict[str, Any], agent: str) -> list[TranscriptEvent]:
        """The rest of a message that came in fragments, after its thought if that has not been shown."""
        thought = get_str(data, "reasoningText") or ""
        events: list[TranscriptEvent] = []
        if thought and agent not in self._thinking:
            events = [*self._close(agent), Text(_tag(agent, Tag.THINK), thought.removesuffix("\n"))]
        self._thinking.discard(agent)
        self._thought[agent] = thought
        return events + self._whole(data, get_str(data, "messageId"), agent, _tag(agent, Tag.AI))

    def reasoning(self, data: dict[str, Any], agent: str) -> list[TranscriptEvent]:
        """The rest of a thought, which may come after the message that included it."""
        if data.get("content") == self._thought.get(agent):
            return []
        self._thinking.add(agent)
        return self._whole(data, get_str(data, "reasoningId"), agent, _tag(agent, Tag.THINK))

    def flush(self) -> list[TranscriptEvent]:
        return [event for agent in list(self._open) for event in self._close(agent)]

    def _delta(self, data: dict[str, Any], identity: str | None, agent: str, tag: Tag) -> list[TranscriptEvent]:
        fragment = get_str(data, "deltaContent")
        if fragment is None:
            return []
        stream = self._open.get(agent)
        if stream is not None and stream.id == identity:
            return stream.lines.feed(fragment)
        events = self._close(agent)
        if len(self._open) >= recent.KEPT:
            events += self._close(next(iter(self._open)))
        self._open[agent] = stream = _Stream(identity, DeltaLines(tag))
        return events + stream.lines.feed(fragment)

    def _whole(self, data: dict[str, Any], identity: str | None, agent: str, tag: Tag) -> list[TranscriptEvent]:
        content = get_text(data, "content") or ""
        stream = self._open.get(agent)
        if stream is not None and stream.id == identity and content:
            del self._open[agent]
            return stream.lines.whole(content)
        events = self._close(agent)
        shown = Shown() if identity is None else self._streamed.get(identity, Shown())
        rest = shown.rest(content)
        rest = (content if rest is None else rest).removesuffix("\n")
        return [*events, Text(tag, rest)] if rest else events

    def _close(self, agent: str) -> list[TranscriptEvent]:
        stream = self._open.pop(agent, None)
        if stream is None:
            return []
        if stream.id is not None:
            self._streamed[stream.id] = stream.lines.shown
        return stream.lines.flush()


def _tag(agent: str, tag: Tag) -> Tag:
    """The tag of the main agent's words or thoughts. Those of subagents count as the system's."""
    return Tag.SYS if agent else tag
