"""Copilot's words and thoughts: fragments first (unless streaming is off), then each message whole."""

from __future__ import annotations

from typing import Any

import msgspec

from ralph.agents.copilot.lines import Data, string
from ralph.transcripts import recent
from ralph.transcripts.deltas import DeltaLines
from ralph.transcripts.events import Tag, Text, TranscriptEvent
from ralph.transcripts.recent import Recent, RecentKeys


class _Stream(msgspec.Struct):
    id: Any
    lines: DeltaLines


class Words:
    """One stream is open for each agent; `agent` is empty for the one whose words count."""

    def __init__(self) -> None:
        self._open: dict[str, _Stream] = {}
        self._streamed = Recent[str, int]()  # how much came of a message before another one began
        self._thought = Recent[str, str]()
        self._thinking = RecentKeys[str]()

    def delta(self, fragment: Any, identity: Any, agent: str, thought: bool = False) -> list[TranscriptEvent]:
        if type(fragment) is not str:
            return []
        stream = self._open.get(agent)
        if stream is not None and stream.id == identity:
            return stream.lines.feed(fragment)
        events = self._close(agent)
        if len(self._open) >= recent.KEPT:
            events += self._close(next(iter(self._open)))
        lines = DeltaLines(_tag(agent, thought=thought))
        self._open[agent] = _Stream(identity, lines)
        if thought:
            self._thinking.add(agent)
        return events + lines.feed(fragment)

    def message(self, data: Data, agent: str) -> list[TranscriptEvent]:
        """The whole message: what did not come in fragments, and the thought before it if that did not."""
        thought = string(data.reasoning_text)
        events: list[TranscriptEvent] = []
        if thought and agent not in self._thinking:
            events = [*self._close(agent), Text(_tag(agent, thought=True), thought.removesuffix("\n"))]
        self._thinking.discard(agent)
        self._thought[agent] = thought
        return events + self._whole(data.message_id, string(data.content), agent, thought=False)

    def reasoning(self, data: Data, agent: str) -> list[TranscriptEvent]:
        """It may come after the message that had it."""
        if data.content == self._thought.get(agent):
            return []
        self._thinking.add(agent)
        return self._whole(data.reasoning_id, string(data.content), agent, thought=True)

    def flush(self) -> list[TranscriptEvent]:
        return [event for agent in list(self._open) for event in self._close(agent)]

    def _whole(self, identity: Any, content: str, agent: str, *, thought: bool) -> list[TranscriptEvent]:
        stream = self._open.get(agent)
        if stream is not None and stream.id == identity:
            missing = content[stream.lines.length :]
            events = stream.lines.feed(missing) if missing else []
            return events + self._close(agent)
        events = self._close(agent)
        came = self._streamed.get(identity, 0) if isinstance(identity, str) else 0
        rest = content[came:].removesuffix("\n")
        return [*events, Text(_tag(agent, thought=thought), rest)] if rest else events

    def _close(self, agent: str) -> list[TranscriptEvent]:
        stream = self._open.pop(agent, None)
        if stream is None:
            return []
        if isinstance(stream.id, str):
            self._streamed[stream.id] = stream.lines.length
        return stream.lines.flush()


def _tag(agent: str, *, thought: bool) -> Tag:
    return Tag.SYS if agent else Tag.THINK if thought else Tag.AI
