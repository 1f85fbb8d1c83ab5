"""How texts ended that have gone out: a secret may have begun there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ralph.transcripts.events import Text, ToolEnd, ToolOutput

if TYPE_CHECKING:
    from ralph.transcripts.events import TranscriptEvent

#: What is remembered of a text: as much as may be the beginning of something.
CONTEXT = 64
#: Tools that never end must not fill the memory; the oldest is forgotten.
_TOOLS = 256


def tool_key(tool: str) -> str:
    return f"tool {tool}"


class Tails:
    """Of each text its last characters. The events themselves are let go of: to free them later, when the processor
    has long forgotten them, took a tenth of the time of a stream."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._said: dict[str, str] = {}
        self._tools: dict[str, str] = {}
        # Of the events that were looked at last.
        self._new_said: dict[str, str] = {}
        self._new_tools: dict[str, str] = {}
        self._over: set[str] = set()

    def look(self, events: list[TranscriptEvent]) -> set[str]:
        """The last characters of each event's text. `keep` is to follow if the events go out as they are."""
        # One pass, since it is made for every event there is.
        size, ends, over = self._size, set(), set()
        said: dict[str, str] = {}
        tools: dict[str, str] = {}
        for event in events:
            kind = type(event)
            if kind is ToolOutput:
                text = event.text  # type: ignore[union-attr]
                ends.add(text[-size:])
                tool = event.tool.id  # type: ignore[union-attr]
                tools[tool] = text if len(text) >= CONTEXT else tools.get(tool, "") + text
            elif kind is Text:
                text = event.text  # type: ignore[union-attr]
                ends.add(text[-size:])
                tag = event.tag  # type: ignore[union-attr]
                said[tag] = text if len(text) >= CONTEXT else said.get(tag, "") + text
            elif kind is ToolEnd:
                tool = event.tool.id  # type: ignore[union-attr]
                over.add(tool)
                tools.pop(tool, None)
        self._new_said, self._new_tools, self._over = said, tools, over
        return ends

    def keep(self) -> list[str]:
        """Remembers what was looked at; gives the keys of the tools that have ended."""
        for tag, text in self._new_said.items():
            self._said[tag] = (self._said.get(tag, "") + text[-CONTEXT:])[-CONTEXT:]
        for tool in self._over:
            self._tools.pop(tool, None)
        for tool, output in self._new_tools.items():
            before = self._tools.pop(tool, "")  # it is the newest now
            self._tools[tool] = (before + output[-CONTEXT:])[-CONTEXT:]
        while len(self._tools) > _TOOLS:
            del self._tools[next(iter(self._tools))]
        over = [tool_key(tool) for tool in self._over]
        self._new_said, self._new_tools, self._over = {}, {}, set()
        return over

    def take(self) -> dict[str, str]:
        """All that is remembered, by key; it is forgotten here."""
        found = {str(tag): text for tag, text in self._said.items()}
        found |= {tool_key(tool): text for tool, text in self._tools.items()}
        self.clear()
        return found

    def clear(self) -> None:
        for texts in (self._said, self._tools, self._new_said, self._new_tools):
            texts.clear()
        self._over.clear()
